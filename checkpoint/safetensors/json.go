package safetensors

import (
	"math"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// scanner reads the JSON of a header. Package encoding/json would let pass what the format forbids (a name twice, a lone surrogate,
// invalid UTF-8, numbers like 1e3) and would not say where a fault is. A fault sticks, and everything after it reads as zero.
type scanner struct {
	b      []byte
	at     int
	tensor string // whose description is being read
	err    *FormatError
}

// lead is the bytes of a file before its header.
const lead = 8

func (s *scanner) fail(at int, format string, args ...any) {
	if s.err == nil {
		s.err = fault(s.tensor, int64(lead+at), format, args...)
		s.at = len(s.b)
	}
}

// peek skips white space and returns the next byte, 0 at the end.
func (s *scanner) peek() byte {
	for ; s.at < len(s.b); s.at++ {
		switch c := s.b[s.at]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// take skips white space and c if that comes next.
func (s *scanner) take(c byte) bool {
	if s.err == nil && s.peek() == c && s.at < len(s.b) {
		s.at++
		return true
	}
	return false
}

// want is take where nothing else may stand.
func (s *scanner) want(c byte, what string) {
	if s.take(c) || s.err != nil {
		return
	}
	if s.at == len(s.b) {
		s.fail(s.at, "the header ends inside its JSON: %s is missing", what)
		return
	}
	s.fail(s.at, "%q where %s was expected", rune(s.b[s.at]), what)
}

// object reads an object and calls field for each of its keys, which differ.
func (s *scanner) object(field func(key string, at int)) {
	s.want('{', "an object's '{'")
	seen := map[string]bool{}
	for more := s.err == nil && !s.take('}'); more; more = s.comma('}', "',' or '}'") {
		s.peek()
		at := s.at
		key := s.text("a key in quotes")
		if seen[key] && s.err == nil {
			s.fail(at, "key %q comes twice", key)
		}
		seen[key] = true
		s.want(':', "':'")
		if s.err == nil {
			field(key, at)
		}
	}
}

// integers reads an array of integers that are not negative.
func (s *scanner) integers() []int64 {
	s.want('[', "an array's '['")
	list := []int64{}
	for more := s.err == nil && !s.take(']'); more; more = s.comma(']', "',' or ']'") {
		list = append(list, s.integer())
	}
	return list
}

// comma reads what stands after an entry and says whether another follows.
func (s *scanner) comma(end byte, what string) bool {
	if s.take(',') {
		return true
	}
	s.want(end, what)
	return false
}

func (s *scanner) integer() int64 {
	c := s.peek()
	start := s.at
	for s.at < len(s.b) && s.b[s.at] >= '0' && s.b[s.at] <= '9' {
		s.at++
	}
	digits := string(s.b[start:s.at])
	if s.at < len(s.b) {
		switch s.b[s.at] {
		case '.', 'e', 'E', '-', '+':
			digits = "" // no integer, or a negative one
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	switch {
	case s.err != nil:
		return 0
	case c == '-':
		s.fail(start, "a negative number")
	case digits == "":
		s.fail(start, "an integer was expected")
	case digits[0] == '0' && len(digits) > 1:
		s.fail(start, "a number with a leading zero")
	case err != nil:
		s.fail(start, "%s is over %d", digits, int64(math.MaxInt64))
	}
	return n
}

// text reads a string.
func (s *scanner) text(what string) string {
	s.want('"', what)
	start := s.at
	for s.at < len(s.b) { // most strings are as they read
		switch c := s.b[s.at]; {
		case c == '"':
			s.at++
			return string(s.b[start : s.at-1])
		case c == '\\':
			return s.escaped(start)
		case c < 0x20:
			s.fail(s.at, "control byte %#02x in a string", c)
		default:
			s.at++
		}
	}
	s.fail(s.at, "the header ends inside a string")
	return ""
}

// escaped is text from the first backslash on.
func (s *scanner) escaped(start int) string {
	out := append([]byte(nil), s.b[start:s.at]...)
	for s.at < len(s.b) {
		c := s.b[s.at]
		s.at++
		switch {
		case c == '"':
			return string(out)
		case c < 0x20:
			s.fail(s.at-1, "control byte %#02x in a string", c)
		case c == '\\':
			out = s.escape(out)
		default:
			out = append(out, c)
		}
	}
	s.fail(s.at, "the header ends inside a string")
	return ""
}

// escape appends what stands after a backslash.
func (s *scanner) escape(out []byte) []byte {
	if s.at == len(s.b) {
		return out // text reports the end
	}
	c := s.b[s.at]
	s.at++
	switch c {
	case '"', '\\', '/':
		return append(out, c)
	case 'b':
		return append(out, '\b')
	case 'f':
		return append(out, '\f')
	case 'n':
		return append(out, '\n')
	case 'r':
		return append(out, '\r')
	case 't':
		return append(out, '\t')
	case 'u':
		at := s.at - 2
		r := s.hex()
		if utf16.IsSurrogate(r) {
			low := rune(-1)
			if s.at+1 < len(s.b) && s.b[s.at] == '\\' && s.b[s.at+1] == 'u' {
				s.at += 2
				low = s.hex()
			}
			if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
				s.fail(at, "half a surrogate pair in a string")
			}
		}
		return utf8.AppendRune(out, r)
	}
	s.fail(s.at-1, "unknown escape \\%c in a string", c)
	return out
}

// hex reads four hexadecimal digits.
func (s *scanner) hex() rune {
	end := min(s.at+4, len(s.b))
	n, err := strconv.ParseUint(string(s.b[s.at:end]), 16, 16)
	if end-s.at < 4 || err != nil {
		s.fail(s.at, "\\u needs four hexadecimal digits")
		return 0
	}
	s.at = end
	return rune(n)
}
