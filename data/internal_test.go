package data

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestDefaultPathSearch(t *testing.T) {
	with, without := t.TempDir(), t.TempDir()
	path := filepath.Join(with, filepath.FromSlash(corpus))
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("light"), 0o666); err != nil {
		t.Fatal(err)
	}
	root := func(s string) func() string { return func() string { return s } }
	unused := func() string { t.Error("looked further than needed"); return "" }
	if got, err := defaultPath([]func() string{root(""), root(without), root(with), unused}); err != nil || got != path {
		t.Errorf("%q, %v", got, err)
	}
	_, err := defaultPath([]func() string{root(without), root("")})
	if !errors.Is(err, ErrNoCorpus) || !strings.Contains(err.Error(), without) || !strings.Contains(err.Error(), "--data FILE") {
		t.Errorf("missing corpus: %v", err)
	}
	if _, err := defaultPath(nil); !errors.Is(err, ErrNoCorpus) || !strings.Contains(err.Error(), "no Go installation") {
		t.Errorf("no Go: %v", err)
	}
}

// FuzzOpen: whatever the bytes, Open ends with tokens that are all readable and in the vocabulary, or with an error that says
// where; it never panics and never believes a count that the file does not have.
func FuzzOpen(f *testing.F) {
	head := func(magic, version, count int32, tail ...byte) []byte {
		raw, _ := binary.Append(nil, binary.LittleEndian, [256]int32{magic, version, count})
		return append(raw, tail...)
	}
	f.Add([]byte("text"), true, 256)
	f.Add([]byte{1, 0, 2}, true, 256)
	f.Add(head(magic16, version16, 2, 1, 0, 2, 0), true, 300)
	f.Add(head(magic32, version32, 1, 1, 0, 0, 128), true, 1<<30)
	f.Add(head(magic32, version16, 0), false, 256)
	f.Add(head(magic16, version16, 1<<30), false, 256)
	f.Add(head(magic16, version16, -5)[:40], true, 1)
	f.Fuzz(func(t *testing.T, raw []byte, bin bool, vocab int) {
		name := "f.txt"
		if bin {
			name = "f.bin"
		}
		vocab = vocab & (1<<31 - 1)
		file, err := newFile(bytes.NewReader(raw), name, int64(len(raw)), vocab)
		if err != nil {
			var fe *FileError
			if errors.As(err, &fe) && (fe.Offset < 0 || fe.Offset > int64(len(raw))) {
				t.Fatalf("fault outside the file of %d bytes: %v", len(raw), err)
			}
			if fe == nil && !errors.Is(err, ErrMismatch) {
				t.Fatalf("unexpected error: %v", err)
			}
			return
		}
		if file.start+file.tokens*int64(file.width) != int64(len(raw)) {
			t.Fatalf("%+v of %d bytes", file.format, len(raw))
		}
		ids := make([]int32, file.Len())
		if err := file.Read(0, ids); err != nil {
			t.Fatal(err)
		}
		for i, id := range ids {
			if id < 0 || int(id) >= vocab {
				t.Fatalf("token %d is %d, vocabulary %d", i, id, vocab)
			}
		}
	})
}
