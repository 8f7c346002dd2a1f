package data

import (
	"strconv"
	"strings"
)

// Text shows tokens to people: byte-level tokens as UTF-8, where bytes that are none become U+FFFD; tokens of a larger
// vocabulary (any id over 255) as their ids.
func Text(tokens []int32) string {
	raw := make([]byte, len(tokens))
	for i, t := range tokens {
		if t < 0 || t > 255 {
			return IDs(tokens)
		}
		raw[i] = byte(t)
	}
	return strings.ToValidUTF8(string(raw), "\uFFFD")
}

// IDs shows tokens as numbers with spaces between them.
func IDs(tokens []int32) string {
	var b strings.Builder
	for i, t := range tokens {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(strconv.Itoa(int(t)))
	}
	return b.String()
}
