package data_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"zeroshard/data"
)

func all(t *testing.T, s data.Tokens) []int32 {
	t.Helper()
	out := make([]int32, s.Len())
	if err := s.Read(0, out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestOpenSet(t *testing.T) {
	dir := t.TempDir()
	folder := t.TempDir()
	write(t, folder, "train.bin", []uint16{1, 2, 3, 4})
	write(t, folder, "val.bin", []uint16{5, 6, 7})
	half := t.TempDir()
	write(t, half, "train.bin", []uint16{1, 2, 3, 4, 5, 6})
	for _, c := range []struct {
		name       string
		paths      []string
		train, val string // as bytes
		text       bool
	}{
		{"folder", []string{folder}, "\x01\x02\x03\x04", "\x05\x06\x07", false},
		{"folder without val.bin", []string{half}, "\x01\x02\x03", "\x04\x05\x06", false},
		{"one text", []string{write(t, dir, "a.txt", strings.Repeat("a", 36)+"bcde")}, strings.Repeat("a", 36), "bcde", true},
		{"texts are joined", []string{write(t, dir, "1.txt", "abc"), write(t, dir, "2.txt", "defg")}, "abcd", "efg", true},
		{"a text for validation", []string{write(t, dir, "my_val.txt", "xyz"), write(t, dir, "3", "abc")}, "abc", "xyz", true},
		{"valid is no val", []string{write(t, dir, "invalid.txt", "abcdef")}, "abc", "def", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := data.OpenSet(c.paths, 256, 2)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			var want [2][]int32
			for i, v := range []string{c.train, c.val} {
				for _, b := range []byte(v) {
					want[i] = append(want[i], int32(b))
				}
			}
			if got := all(t, s.Train); !slices.Equal(got, want[0]) {
				t.Errorf("train %v, want %v", got, want[0])
			}
			if got := all(t, s.Val); !slices.Equal(got, want[1]) {
				t.Errorf("val %v, want %v", got, want[1])
			}
			if s.Text != c.text {
				t.Errorf("Text = %v", s.Text)
			}
		})
	}
}

func TestOpenSetFaults(t *testing.T) {
	dir, empty := t.TempDir(), t.TempDir()
	text, bin := write(t, dir, "a.txt", "abcdef"), write(t, dir, "a.bin", []uint16{1, 2, 3, 4, 5, 6, 7, 8})
	for _, c := range []struct {
		name  string
		paths []string
		seq   int
		want  error
		say   string
	}{
		{"missing file", []string{filepath.Join(dir, "none.txt")}, 2, fs.ErrNotExist, "none.txt"},
		{"folder without train.bin", []string{empty}, 2, fs.ErrNotExist, "holds no train.bin: make one of texts by zeroshard prepare FILES -o " + empty},
		{"nothing", nil, 2, data.ErrMismatch, "no file to train on"},
		{"validation alone", []string{write(t, dir, "val.bin", []uint16{1, 2, 3})}, 2, data.ErrMismatch, "no file to train on"},
		{"text and ids", []string{text, bin}, 2, data.ErrMismatch, "plain text"},
		{"too short for two parts", []string{text}, 3, data.ErrCorrupt, "byte 6: too short: 2 tokens for training, sequences of 3 need at least 4"},
		{"too short for one", []string{text}, 6, data.ErrCorrupt, "0 tokens for training"},
		{"short validation file", []string{bin, write(t, dir, "x.val.bin", []uint16{1, 2})}, 2, data.ErrCorrupt, "2 tokens for validation"},
		{"corrupt second file", []string{bin, write(t, dir, "b.bin", []uint16{300})}, 2, data.ErrCorrupt, "b.bin: token 0 at byte 0: id 300"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := data.OpenSet(c.paths, 256, c.seq)
			if s != nil || !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.say) {
				t.Errorf("%v\nwant %v, %q", err, c.want, c.say)
			}
		})
	}
}

// The validation part is a tenth when that is more than a sequence needs.
func TestOpenSetTenth(t *testing.T) {
	path := write(t, t.TempDir(), "a.txt", strings.Repeat("0123456789", 100))
	s, err := data.OpenSet([]string{path}, 256, 8)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if s.Train.Len() != 900 || s.Val.Len() != 100 {
		t.Errorf("%d and %d tokens, want 900 and 100", s.Train.Len(), s.Val.Len())
	}
}

func TestDefaultPath(t *testing.T) {
	path, err := data.DefaultPath()
	if errors.Is(err, data.ErrNoCorpus) {
		t.Skip(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Size() < 500_000 {
		t.Errorf("%s: %v, %v", path, info, err)
	}
}
