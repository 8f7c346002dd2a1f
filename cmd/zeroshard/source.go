package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"zeroshard/checkpoint"
	"zeroshard/data/tokenizer"
	"zeroshard/models/gpt"
	"zeroshard/models/gpt/hf"
)

// source is a folder that weights come from: a Hugging Face folder, or a saved step.
type source struct {
	dir       string
	config    gpt.Config
	tokenizer string // as tokenizer.Named takes it; "" where the folder does not say
	sha256    string // of the tokenizer's files, "" where nobody says
	read      func(name string, lo int, dst []float32) error
	close     func() error
	saved     *checkpoint.Saved // nil for a Hugging Face folder
	endOfText *int32            // as config.json says, or a step of a model that came from one; nil where they do not
	dropout   string            // what config.json says of it, "" for none
}

// openSource opens dir: a folder with a config.json is Hugging Face's, others are a run's or a step's.
func openSource(dir string) (*source, error) {
	if _, err := os.Stat(dir); err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(dir, "config.json")); err == nil {
		return openHF(dir)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	saved, err := openSaved(dir)
	if err != nil {
		if errors.Is(err, checkpoint.ErrNone) {
			err = fmt.Errorf("%w, and no config.json makes it a Hugging Face folder", err)
		}
		return nil, err
	}
	m, err := readModel(saved.Manifest)
	if err != nil {
		return nil, errors.Join(err, saved.Close())
	}
	s := &source{dir: dir, config: m.Config, tokenizer: saved.Manifest.Data.Tokenizer, sha256: saved.Manifest.Data.TokenizerSHA256, close: saved.Close, saved: saved, endOfText: m.EndOfText,
		read: func(name string, lo int, dst []float32) error { return saved.Read(name, checkpoint.Weights, lo, dst) }}
	if s.sha256 != "" { // beside the steps, whatever the current folder is
		store, _, err := find(dir)
		if err != nil {
			return nil, errors.Join(err, saved.Close())
		}
		s.tokenizer = filepath.Join(store.Dir(), "..", checkpoint.TokenizerFolder)
	}
	return s, nil
}

// name is what a model from the source is called.
func (s *source) name() string {
	if s.saved != nil {
		if m, err := readModel(s.saved.Manifest); err == nil && m.Name != "" {
			return m.Name
		}
	}
	dir, err := filepath.Abs(s.dir)
	if err != nil {
		dir = filepath.Clean(s.dir)
	}
	return filepath.Base(dir)
}

// shut closes the source, once.
func (s *source) shut() error {
	if s == nil || s.close == nil {
		return nil
	}
	end := s.close
	s.close = nil
	return end()
}

func openHF(dir string) (*source, error) {
	f, err := hf.Open(dir)
	if err != nil {
		return nil, err
	}
	s := &source{dir: dir, config: f.Config(), read: f.Read, close: f.Close}
	if id, ok := f.EndOfText(); ok {
		end := int32(id)
		s.endOfText = &end
	}
	switch embd, attn, resid := f.Dropout(); {
	case embd != attn || attn != resid:
		s.dropout = fmt.Sprintf("%v after the embedding, %v of attention, %v of residual branches", embd, attn, resid)
	case embd != 0:
		s.dropout = fmt.Sprint(embd)
	}
	for _, name := range []string{"vocab.json", "tokenizer.json"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			s.tokenizer = dir
		}
	}
	return s, nil
}

// end is the token that ends a text: the tokenizer's (nil for none), else the folder's. It reports false where neither has one.
func (s *source) end(words tokenizer.Tokenizer) (id int32, ok bool) {
	if words != nil {
		id, ok = words.EndOfText()
	}
	if !ok && s.endOfText != nil {
		id, ok = *s.endOfText, true
	}
	return id, ok
}

// records says that a saved step names a tokenizer that is not built in.
func (s *source) records() bool {
	return s.saved != nil && s.tokenizer != "" && !isBuiltIn(s.tokenizer)
}

// words returns the tokenizer of the source: name if it is not empty, else what the folder says, else what its vocabulary suggests. Its ids
// must be the model's.
func (s *source) words(name string) (tokenizer.Tokenizer, error) {
	recorded := name == "" && s.records()
	if name == "" {
		name = s.tokenizer
	}
	if name == "" {
		switch s.config.Vocab {
		case 256:
			name = "bytes"
		case 50257:
			name = "gpt2"
		default:
			return nil, usagef("%s does not say what its %d tokens are: pass --tokenizer bytes, gpt2, or a folder with vocab.json and merges.txt", s.dir, s.config.Vocab)
		}
	}
	find := tokenizer.Named
	if recorded {
		find = func(string) (tokenizer.Tokenizer, error) { return s.recorded() }
	}
	t, err := find(name)
	if err != nil {
		return nil, err
	}
	if t.Vocab() > s.config.Vocab {
		return nil, usagef("tokenizer %s has %d tokens, the model of %s knows %d: it is another model's", name, t.Vocab(), s.dir, s.config.Vocab)
	}
	return t, nil
}
