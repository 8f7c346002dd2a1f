package main

import (
	"errors"
	"os"
	"path/filepath"

	"zeroshard/data"
	"zeroshard/data/tokenizer"
)

// texts is files as tokens of a model.
type texts struct {
	tokens []data.Tokens
	plain  bool // some file is a text
	files  []*data.File
}

// openTexts opens files for a model: .bin as they are, texts cut into tokens by words, at most one more than most of each (0: all). A folder
// stands for its val.bin.
func openTexts(paths []string, vocab int, words tokenizer.Tokenizer, most int) (*texts, error) {
	t := &texts{}
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			path = filepath.Join(path, "val.bin")
		}
		f, err := data.Open(path, vocab)
		if err != nil {
			return nil, errors.Join(err, t.close())
		}
		t.files = append(t.files, f)
		tokens := data.Tokens(f)
		if f.Text() {
			t.plain = true
			if words != nil {
				if tokens, err = encodeFile(f, words, most); err != nil {
					return nil, errors.Join(err, t.close())
				}
			}
		}
		t.tokens = append(t.tokens, tokens)
	}
	return t, nil
}

func (t *texts) close() error {
	if t == nil {
		return nil
	}
	var errs []error
	for _, f := range t.files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// encodeBlock is how much of a text is cut into tokens at a time.
const encodeBlock = 1 << 20

// encodeFile cuts a text into tokens, block by block, at places where that changes no token.
func encodeFile(f *data.File, words tokenizer.Tokenizer, most int) (data.Memory, error) {
	var ids []int32
	var rest []byte
	raw := make([]int32, encodeBlock)
	for at := 0; at < f.Len(); {
		n := min(len(raw), f.Len()-at)
		if err := f.Read(at, raw[:n]); err != nil {
			return nil, err
		}
		for _, b := range raw[:n] {
			rest = append(rest, byte(b))
		}
		at += n
		cut := len(rest)
		if at < f.Len() {
			cut = tokenizer.LastCut(words, rest)
		}
		ids = words.Encode(ids, string(rest[:cut]))
		rest = append(rest[:0], rest[cut:]...)
		if most > 0 && len(ids) > most {
			return ids[:most+1], nil
		}
	}
	return ids, nil
}
