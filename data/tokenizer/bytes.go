package tokenizer

import "slices"

// Bytes is the tokenizer whose ids are the bytes of the text: vocabulary 256, no end of text.
func Bytes() Tokenizer { return byteLevel{"bytes"} }

type byteLevel struct{ name string }

func (b byteLevel) Name() string { return b.name }

func (byteLevel) Vocab() int { return 256 }

func (byteLevel) EndOfText() (int32, bool) { return 0, false }

func (byteLevel) Encode(dst []int32, text string) []int32 {
	n := len(dst)
	dst = slices.Grow(dst, len(text))[:n+len(text)]
	for i := range len(text) {
		dst[n+i] = int32(text[i])
	}
	return dst
}

func (b byteLevel) Token(id int32) ([]byte, error) {
	if id < 0 || id > 255 {
		return nil, badID(b.name, id, 256)
	}
	return []byte{byte(id)}, nil
}

// byteChars are the characters that stand for bytes in GPT-2's files, by byte: a printable Latin-1 character for itself, the other
// 68 bytes, in order, for U+0100 and what follows. So a file of tokens has neither spaces nor control characters.
func byteChars() (chars [256]rune) {
	next := rune(0x100)
	for b := range chars {
		r := rune(b)
		if r >= '!' && r <= '~' || r >= 0xA1 && r <= 0xFF && r != 0xAD {
			chars[b] = r
			continue
		}
		chars[b] = next
		next++
	}
	return chars
}

// toChars writes bytes in those characters.
func toChars(chars *[256]rune, token []byte) string {
	out := make([]rune, len(token))
	for i, b := range token {
		out[i] = chars[b]
	}
	return string(out)
}

// toBytes reads them back; false where a character stands for no byte.
func toBytes(bytes map[rune]byte, word string) ([]byte, bool) {
	out := make([]byte, 0, len(word))
	for _, r := range word {
		b, ok := bytes[r]
		if !ok {
			return nil, false
		}
		out = append(out, b)
	}
	return out, true
}

// charBytes is the inverse of byteChars.
func charBytes() map[rune]byte {
	out := map[rune]byte{}
	for b, r := range byteChars() {
		out[r] = byte(b)
	}
	return out
}
