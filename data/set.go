package data

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Set is the two parts of a corpus. Both hold at least seq+1 tokens.
type Set struct {
	Train, Val Tokens
	Text       bool // tokens are the bytes of a text
	files      []*File
}

// Close closes the files.
func (s *Set) Close() error {
	errs := make([]error, len(s.files))
	for i, f := range s.files {
		errs[i] = f.Close()
	}
	return errors.Join(errs...)
}

// OpenSet opens the files of a corpus for sequences of seq tokens.
//
// A folder stands for the train.bin in it, and val.bin if there is one. A file whose name has the word val or validation
// ("val.bin", "fineweb_val_000000.bin") is for validation, every other for training; several of one part are joined in the given
// order. Without a validation file the last tenth of the tokens, but at least seq+1, is for validation. Text and token files do
// not mix.
//
// Errors are Open's; a part that is too short wraps ErrCorrupt and says what is needed.
func OpenSet(paths []string, vocab, seq int) (*Set, error) {
	s := &Set{}
	if err := s.open(paths, vocab, seq); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Set) open(paths []string, vocab, seq int) error {
	paths, err := expand(paths)
	if err != nil {
		return err
	}
	var train, val []Tokens
	for _, p := range paths {
		f, err := Open(p, vocab)
		if err != nil {
			return err
		}
		s.files = append(s.files, f)
		if f.Text() != s.files[0].Text() {
			return fmt.Errorf("%w: %s and %s: one is plain text, the other holds token ids", ErrMismatch, s.files[0].path, p)
		}
		if isVal(p) {
			val = append(val, f)
		} else {
			train = append(train, f)
		}
	}
	if len(train) == 0 {
		return fmt.Errorf("%w: no file to train on among %s", ErrMismatch, strings.Join(paths, ", "))
	}
	s.Text = s.files[0].Text()
	s.Train = Join(train...)
	if len(val) > 0 {
		s.Val = Join(val...)
	} else {
		s.split(seq)
	}
	return s.judge(seq)
}

// split cuts the validation part off the end.
func (s *Set) split(seq int) {
	n := s.Train.Len()
	cut := max(0, n-max(n/10, seq+1))
	s.Val = Part(s.Train, cut, n)
	s.Train = Part(s.Train, 0, cut)
}

func (s *Set) judge(seq int) error {
	for _, p := range []struct {
		name string
		t    Tokens
	}{{"training", s.Train}, {"validation", s.Val}} {
		if p.t.Len() < seq+1 {
			last := s.files[len(s.files)-1]
			return fault(last.path, last.start+last.tokens*int64(last.width), "too short: %d tokens for %s, sequences of %d need at "+
				"least %d in each part (the whole corpus has %d)", p.t.Len(), p.name, seq, seq+1, s.len())
		}
	}
	return nil
}

func (s *Set) len() (n int) {
	for _, f := range s.files {
		n += f.Len()
	}
	return n
}

// expand replaces folders by the files in them.
func expand(paths []string) (out []string, err error) {
	for _, p := range paths {
		info, err := os.Stat(p)
		if err != nil {
			return nil, fmt.Errorf("data: %w", err)
		}
		if !info.IsDir() {
			out = append(out, p)
			continue
		}
		out = append(out, filepath.Join(p, "train.bin"))
		val := filepath.Join(p, "val.bin")
		if _, err := os.Stat(val); err == nil {
			out = append(out, val)
		} else if !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("data: %w", err)
		}
	}
	return out, nil
}

// isVal says that a file's name has the word val or validation.
func isVal(path string) bool {
	words := strings.FieldsFunc(strings.ToLower(filepath.Base(path)), func(r rune) bool { return strings.ContainsRune("._- ", r) })
	for _, w := range words {
		if w == "val" || w == "validation" {
			return true
		}
	}
	return false
}
