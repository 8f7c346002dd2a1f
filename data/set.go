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
	// Tokenizer is what gave the ids, as tokenizer.Named finds it: "bytes", "gpt2", or a folder. "" where the files do not say.
	Tokenizer       string
	TokenizerSHA256 string // of the folder's files, tokenizer.SHA256; "" where it is built in or nobody says
	files           []*File
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
// A folder stands for the train.bin in it, and val.bin if there is one; its meta.json, where prepare left one, must fit them and the
// vocabulary. A file whose name has the word val or validation
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
	sources, err := s.expand(paths, vocab)
	if err != nil {
		return err
	}
	var train, val []Tokens
	for _, p := range sources {
		f, err := Open(p.path, vocab)
		if err != nil {
			return err
		}
		s.files = append(s.files, f)
		if f.Text() != s.files[0].Text() {
			return fmt.Errorf("%w: %s and %s: one is plain text, the other holds token ids", ErrMismatch, s.files[0].path, p.path)
		}
		if p.meta != nil && p.meta.Tokens != f.tokens {
			return fault(p.path, f.start+f.tokens*int64(f.width), "%d tokens, but %s beside it counts %d: one of them was changed", f.tokens, MetaFile,
				p.meta.Tokens)
		}
		if isVal(p.path) {
			val = append(val, f)
		} else {
			train = append(train, f)
		}
	}
	if len(train) == 0 {
		return fmt.Errorf("%w: no file to train on among %s", ErrMismatch, strings.Join(paths, ", "))
	}
	if s.Text = s.files[0].Text(); s.Text {
		s.Tokenizer = "bytes"
	}
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

// source is a file of a corpus, and what its folder's meta.json says of it, if anything.
type source struct {
	path string
	meta *MetaPart
}

// expand replaces folders by the files in them, and learns from their meta.json what gave the ids.
func (s *Set) expand(paths []string, vocab int) (out []source, err error) {
	var first *Meta
	var firstDir string
	for _, dir := range paths {
		info, err := os.Stat(dir)
		if err != nil {
			return nil, fmt.Errorf("data: %w", err)
		}
		if !info.IsDir() {
			out = append(out, source{path: dir})
			continue
		}
		m, err := ReadMeta(dir)
		switch {
		case err != nil:
			return nil, err
		case m == nil:
			m = &Meta{}
		case m.Vocab > vocab:
			return nil, fmt.Errorf("%w: the tokens of %s are of %s's vocabulary of %d, the model's is %d: choose a model of at least that vocabulary, "+
				"or prepare the texts with another tokenizer", ErrMismatch, dir, m.Tokenizer, m.Vocab, vocab)
		case first == nil:
			first, firstDir, s.Tokenizer, s.TokenizerSHA256 = m, dir, m.named(dir), m.TokenizerSHA256
		case m.TokenizerSHA256 != first.TokenizerSHA256 || m.TokenizerSHA256 == "" && m.Tokenizer != first.Tokenizer:
			return nil, fmt.Errorf("%w: the tokens of %s are %s's, those of %s are another vocabulary's, %s's", ErrMismatch, firstDir, first.Tokenizer,
				dir, m.Tokenizer)
		}
		files, err := inFolder(dir, m)
		if err != nil {
			return nil, err
		}
		out = append(out, files...)
	}
	return out, nil
}

// inFolder is a folder's files.
func inFolder(dir string, m *Meta) (out []source, err error) {
	for _, name := range []string{"train.bin", "val.bin"} {
		f := source{path: filepath.Join(dir, name)}
		_, err := os.Stat(f.path)
		switch {
		case errors.Is(err, os.ErrNotExist) && name == "train.bin":
			return nil, fmt.Errorf("data: the folder %s holds no train.bin: make one of texts by zeroshard prepare FILES -o %s (%w)", dir, dir, err)
		case errors.Is(err, os.ErrNotExist):
			continue
		case err != nil:
			return nil, fmt.Errorf("data: %w", err)
		}
		if f.meta = m.Val; name == "train.bin" {
			f.meta = &m.Train
		}
		if m.Format == "" {
			f.meta = nil
		}
		out = append(out, f)
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
