package tokenizer

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// GPT-2's pattern. No token crosses the end of a piece.
//
//	's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
const pattern = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`

// class is a character's class in the pattern.
type class uint8

const (
	other class = iota
	letter
	number
	space
)

func classOf(r rune) class {
	switch {
	case 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z':
		return letter
	case '!' <= r && r <= '~':
		if '0' <= r && r <= '9' {
			return number
		}
		return other
	case unicode.IsSpace(r):
		return space
	case unicode.IsLetter(r):
		return letter
	case unicode.IsNumber(r):
		return number
	}
	return other
}

// pieceLen is the length of the first piece of a text that is not empty.
func pieceLen(s string) int {
	if n := contraction(s); n > 0 {
		return n
	}
	body := s
	if s[0] == ' ' {
		body = s[1:]
	}
	if len(body) > 0 {
		if r, _ := utf8.DecodeRuneInString(body); classOf(r) != space {
			return len(s) - len(body) + runLen(body, classOf(r))
		}
	}
	n := runLen(s, space)
	if n == len(s) {
		return n
	}
	// The run's last character belongs to what follows: as its prefix if it is a space, else as a piece.
	if _, last := utf8.DecodeLastRuneInString(s[:n]); n > last {
		return n - last
	}
	return n
}

func contraction(s string) int {
	if s[0] != '\'' || len(s) == 1 {
		return 0
	}
	switch s[1] {
	case 's', 't', 'm', 'd':
		return 2
	}
	for _, c := range []string{"'re", "'ve", "'ll"} {
		if strings.HasPrefix(s, c) {
			return 3
		}
	}
	return 0
}

// runLen is the length of the characters of a class that s starts with.
func runLen(s string, c class) int {
	for i, r := range s {
		if classOf(r) != c {
			return i
		}
	}
	return len(s)
}

// LastCut returns the last place p of a text that goes on at which t can be cut: the ids of the whole are those of text[:p] and
// then those of the rest. 0 if there is no such place.
//
// For byte-pair encodings that is between a letter, number or sign and a character of another class: no piece of GPT-2's pattern
// crosses there, but for contractions, which take letters after an apostrophe. After a space there is no such place: the space
// belongs to what follows. Both characters must be whole, so that neither side sees a byte of the other's.
func LastCut(t Tokenizer, text []byte) int {
	switch t.(type) {
	case byteLevel:
		return len(text)
	case *bpe:
		return lastCut(text)
	}
	return 0
}

func lastCut(text []byte) int {
	for p := len(text); p > 0; {
		r, n := utf8.DecodeLastRune(text[:p])
		p -= n
		before, m := utf8.DecodeLastRune(text[:p])
		if r == utf8.RuneError && n == 1 || before == utf8.RuneError && m <= 1 {
			continue
		}
		c := classOf(before)
		if c != space && c != classOf(r) && !(before == '\'' && classOf(r) == letter) {
			return p
		}
	}
	return 0
}
