package data

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// MetaFile is the file beside train.bin that says how a folder's tokens were made.
const MetaFile = "meta.json"

// MetaFormat is a Meta's first field; what has another one is somebody else's file.
const MetaFormat = "zeroshard-tokens-1"

// Meta says how the token files of a folder were made.
type Meta struct {
	Format          string    `json:"format"`
	Tokenizer       string    `json:"tokenizer"`                  // bytes, gpt2, or the name of the folder that it came from
	TokenizerSHA256 string    `json:"tokenizer_sha256,omitempty"` // of its files, which lie beside; empty where it is built in
	Vocab           int       `json:"vocab"`
	EndOfText       *int32    `json:"end_of_text"` // the id that ends a document; null: none was written
	Type            string    `json:"type"`        // of an id in the files: uint16 or uint32
	Documents       int64     `json:"documents"`
	Train           MetaPart  `json:"train"`
	Val             *MetaPart `json:"val,omitempty"`
}

// MetaPart is one token file.
type MetaPart struct {
	File      string `json:"file"`
	Tokens    int64  `json:"tokens"`
	Documents int64  `json:"documents"` // that begin in it
	Bytes     int64  `json:"bytes"`     // of text
	SHA256    string `json:"sha256"`    // of the file
}

// ReadMeta reads a folder's meta.json, nil where there is none of this format. Errors: the operating system's, *FileError.
func ReadMeta(dir string) (*Meta, error) {
	path := filepath.Join(dir, MetaFile)
	raw, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("data: %w", err)
	}
	if !bytes.Contains(raw, []byte(MetaFormat)) {
		return nil, nil
	}
	m := &Meta{}
	if err := json.Unmarshal(raw, m); err != nil {
		return nil, fault(path, 0, "%v", err.Error())
	}
	if m.Format != MetaFormat {
		return nil, nil
	}
	switch {
	case m.Tokenizer == "" || m.Vocab < 1:
		return nil, fault(path, 0, "tokenizer %q of vocabulary %d: neither may be empty", m.Tokenizer, m.Vocab)
	case m.Train.Tokens < 0:
		return nil, fault(path, 0, "%d tokens to train on: a count is 0 or more", m.Train.Tokens)
	case m.Val != nil && m.Val.Tokens < 0:
		return nil, fault(path, 0, "%d held-out tokens: a count is 0 or more", m.Val.Tokens)
	}
	return m, nil
}

// named is the tokenizer as tokenizer.Named finds it.
func (m *Meta) named(dir string) string {
	if m.TokenizerSHA256 != "" {
		return dir
	}
	return m.Tokenizer
}
