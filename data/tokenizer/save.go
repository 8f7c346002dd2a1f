package tokenizer

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf16"
)

// Files are the files that Open reads a tokenizer of this package from, by name. For those of a folder they are the folder's, for
// GPT-2 what everyone has, for Bytes a vocabulary of GPT-2's kind: byte b is the character that stands for it and has id b, and
// there are no merges.
func Files(t Tokenizer) (map[string][]byte, error) {
	switch t := t.(type) {
	case byteLevel:
		var words [][]byte
		for b := range 256 {
			words = append(words, []byte{byte(b)})
		}
		return map[string][]byte{vocabFile: vocabJSON(words, -1), mergesFile: []byte(mergesHead),
			configFile: []byte(bytesConfig), specialFile: []byte("{}\n")}, nil
	case *bpe:
		if t.files != nil {
			return t.files, nil
		}
		return map[string][]byte{vocabFile: vocabJSON(t.words, t.eot), mergesFile: mergesText(t.words, t.eot),
			configFile: []byte(gpt2Config), specialFile: []byte(gpt2Special)}, nil
	}
	return nil, fmt.Errorf("%w: %s is not of a kind that can be saved", ErrFolder, t.Name())
}

// Save writes Files into a folder, which it makes if it must. Errors: ErrFolder, and the operating system's.
func Save(dir string, t Tokenizer) error {
	files, err := Files(t)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("tokenizer: %w", err)
	}
	for _, name := range sorted(files) {
		if err := os.WriteFile(filepath.Join(dir, name), files[name], 0o644); err != nil {
			return fmt.Errorf("tokenizer: %w", err)
		}
	}
	return nil
}

// SHA256 is a hash of Files, names and contents, in hexadecimal digits: of each file in the order of names "NAME LENGTH\n" and what is in it.
func SHA256(files map[string][]byte) string {
	h := sha256.New()
	for _, name := range sorted(files) {
		fmt.Fprintf(h, "%s %d\n", name, len(files[name]))
		h.Write(files[name])
	}
	return hex.EncodeToString(h.Sum(nil))
}

// BuiltIn says that Named finds t by its name, without a folder.
func BuiltIn(t Tokenizer) bool {
	switch t := t.(type) {
	case byteLevel:
		return t.name == "bytes"
	case *bpe:
		return t.files == nil
	}
	return false
}

const mergesHead = "#version: 0.2\n"

const gpt2Config = `{
  "add_bos_token": false,
  "add_prefix_space": false,
  "bos_token": "<|endoftext|>",
  "eos_token": "<|endoftext|>",
  "model_max_length": 1024,
  "tokenizer_class": "GPT2Tokenizer",
  "unk_token": "<|endoftext|>"
}
`

const gpt2Special = `{
  "bos_token": "<|endoftext|>",
  "eos_token": "<|endoftext|>",
  "unk_token": "<|endoftext|>"
}
`

// bytesConfig names no special token, in so many words: what is left out becomes <|endoftext|> in transformers' GPT2Tokenizer,
// which gives that the id 256, beyond the vocabulary of the model.
const bytesConfig = `{
  "add_bos_token": false,
  "add_prefix_space": false,
  "bos_token": null,
  "eos_token": null,
  "pad_token": null,
  "tokenizer_class": "GPT2Tokenizer",
  "unk_token": null
}
`

// vocabJSON is vocab.json as GPT-2's was written: in the order of ids, ASCII alone. eot is the id of the special token.
func vocabJSON(words [][]byte, eot int32) []byte {
	chars := byteChars()
	out := []byte{'{'}
	for id, w := range words {
		name := toChars(&chars, w)
		if int32(id) == eot {
			name = string(w)
		}
		if id > 0 {
			out = append(out, ", "...)
		}
		out = fmt.Appendf(appendASCII(out, name), ": %d", id)
	}
	return append(out, '}')
}

// appendASCII appends a JSON string whose characters beyond ASCII are escaped. Names have no control characters.
func appendASCII(out []byte, s string) []byte {
	out = append(out, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			out = append(out, '\\', byte(r))
		case r < 0x80:
			out = append(out, byte(r))
		default:
			for _, u := range utf16.Encode([]rune{r}) {
				out = fmt.Appendf(out, `\u%04x`, u)
			}
		}
	}
	return append(out, '"')
}

// mergesText finds the merges of a vocabulary whose ids are their order. The last merge that made a token is the pair that is left when
// its bytes are merged as far as older tokens go.
func mergesText(words [][]byte, eot int32) []byte {
	ranks, bytes, chars := map[string]int{}, byteIDs(words), byteChars()
	for id, w := range words {
		if int32(id) != eot {
			ranks[string(w)] = id
		}
	}
	all := rankMerges(ranks)
	var out strings.Builder
	out.WriteString(mergesHead)
	for id, w := range words {
		if len(w) < 2 || int32(id) == eot {
			continue
		}
		older := merges(func(piece string, left, right part) (rank, to int32, ok bool) {
			rank, to, ok = all(piece, left, right)
			return rank, to, ok && to < int32(id)
		})
		for i, half := range older.merge(nil, string(w), bytes) {
			if i > 0 {
				out.WriteByte(' ')
			}
			out.WriteString(toChars(&chars, words[half]))
		}
		out.WriteByte('\n')
	}
	return []byte(out.String())
}
