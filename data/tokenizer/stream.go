package tokenizer

import "unicode/utf8"

// Stream turns ids into text as they come. A character is given when its last byte has come; each byte that is no UTF-8 becomes
// U+FFFD, so that all pieces together are string([]rune(s)) of the tokens' bytes s.
type Stream struct {
	t    Tokenizer
	held []byte // the beginning of a character
}

// NewStream begins a text.
func NewStream(t Tokenizer) *Stream { return &Stream{t: t} }

// Add returns the text that an id completes: valid UTF-8, often empty. Error: ErrID, after which the stream is as before.
func (s *Stream) Add(id int32) (string, error) {
	token, err := s.t.Token(id)
	if err != nil {
		return "", err
	}
	s.held = append(s.held, token...)
	var out []byte
	for len(s.held) > 0 && utf8.FullRune(s.held) {
		r, n := utf8.DecodeRune(s.held)
		out = utf8.AppendRune(out, r)
		s.held = s.held[n:]
	}
	return string(out), nil
}

// End returns what is held back, as U+FFFD, and begins a new text.
func (s *Stream) End() string {
	out := string([]rune(string(s.held)))
	s.held = nil
	return out
}
