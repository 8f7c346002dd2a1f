package data_test

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"zeroshard/data"
)

// write makes a file of little-endian values.
func write(t *testing.T, dir, name string, values ...any) string {
	t.Helper()
	var raw []byte
	for _, v := range values {
		if s, ok := v.(string); ok {
			raw = append(raw, s...)
			continue
		}
		var err error
		if raw, err = binary.Append(raw, binary.LittleEndian, v); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, raw, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// header is llm.c's.
func header(magic, version, count int32) [256]int32 { return [256]int32{magic, version, count} }

func TestOpen(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		name   string
		path   string
		vocab  int
		tokens []int32
		text   bool
	}{
		{"nanoGPT", write(t, dir, "a.bin", []uint16{1, 2, 65535}), 65536, []int32{1, 2, 65535}, false},
		{"nanoGPT, empty", write(t, dir, "b.bin"), 10, []int32{}, false},
		{"llm.c uint16", write(t, dir, "c.bin", header(20240520, 1, 3), []uint16{7, 0, 50256}), 50257, []int32{7, 0, 50256}, false},
		{"llm.c uint32", write(t, dir, "d.bin", header(20240801, 7, 2), []uint32{128255, 3}), 128256, []int32{128255, 3}, false},
		{"llm.c in another name", write(t, dir, "c", header(20240520, 1, 1), []uint16{9}), 10, []int32{9}, false},
		{"text", write(t, dir, "e.txt", "hi\xff"), 256, []int32{'h', 'i', 255}, true},
		{"text of three bytes that look like half a magic number", write(t, dir, "f.txt", "\x88\xd8\x34"), 300, []int32{0x88, 0xd8, 0x34}, true},
		{"empty text", write(t, dir, "g.txt"), 256, []int32{}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, err := data.Open(c.path, c.vocab)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			got := make([]int32, f.Len())
			if err := f.Read(0, got); err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, c.tokens) || f.Text() != c.text {
				t.Errorf("tokens %v, text %v; want %v, %v", got, f.Text(), c.tokens, c.text)
			}
			if err := f.Read(f.Len(), make([]int32, 1)); !errors.Is(err, data.ErrRange) {
				t.Errorf("read past the end: %v", err)
			}
		})
	}
}

func TestOpenFaults(t *testing.T) {
	dir := t.TempDir()
	big := make([]uint16, 100_000) // several blocks
	big[99_000] = 300
	for _, c := range []struct {
		name          string
		path          string
		vocab         int
		token, offset int64
		say           string
	}{
		{"id at the vocabulary", write(t, dir, "a.bin", []uint16{1, 9, 10, 11}), 10, 2, 4, "id 10 is outside the vocabulary of 10"},
		{"id deep in the file", write(t, dir, "b.bin", big), 300, 99_000, 198_000, "id 300"},
		{"id behind a header", write(t, dir, "c.bin", header(20240520, 1, 2), []uint16{1, 600}), 512, 1, 1026, "id 600"},
		{"id over 2^31", write(t, dir, "d.bin", header(20240801, 7, 1), []uint32{1 << 31}), 1 << 30, 0, 1024, "id 2147483648"},
		{"odd bytes", write(t, dir, "e.bin", []uint16{1, 2}, []uint8{3}), 10, -1, 4, "half a token"},
		{"header cut", write(t, dir, "f.bin", []int32{20240520, 1, 3}), 10, -1, 12, "header ends early"},
		{"header's version", write(t, dir, "g.bin", header(20240520, 2, 0)), 10, -1, 4, "version 2"},
		{"versions exchanged", write(t, dir, "h.bin", header(20240801, 1, 0)), 10, -1, 4, "version 1"},
		{"negative count", write(t, dir, "i.bin", header(20240520, 1, -1)), 10, -1, 8, "-1 tokens"},
		{"tokens missing", write(t, dir, "j.bin", header(20240520, 1, 3), []uint16{1, 2}), 10, -1, 1028, "should have 1030 bytes; it has 1028"},
		{"tokens too many", write(t, dir, "k.bin", header(20240520, 1, 1), []uint16{1, 2}), 10, -1, 1026, "should have 1026 bytes; it has 1028"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := data.Open(c.path, c.vocab)
			var fe *data.FileError
			if !errors.As(err, &fe) || !errors.Is(err, data.ErrCorrupt) {
				t.Fatalf("error %v, want a *FileError", err)
			}
			if fe.Path != c.path || fe.Token != c.token || fe.Offset != c.offset || !strings.Contains(err.Error(), c.say) {
				t.Errorf("%v\nwant token %d, byte %d, %q", err, c.token, c.offset, c.say)
			}
		})
	}
}

func TestOpenOther(t *testing.T) {
	dir := t.TempDir()
	if _, err := data.Open(filepath.Join(dir, "none"), 256); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	var pe *fs.PathError
	if _, err := data.Open(dir, 256); !errors.As(err, &pe) || pe.Path != dir {
		t.Errorf("folder: %v", err)
	}
	if _, err := data.Open(write(t, dir, "a.txt", "abc"), 97); !errors.Is(err, data.ErrMismatch) || errors.Is(err, data.ErrCorrupt) {
		t.Errorf("text in a small vocabulary: %v", err)
	}
	path := write(t, dir, "b.bin", []uint16{1, 2, 3, 4})
	f, err := data.Open(path, 10)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := os.Truncate(path, 5); err != nil {
		t.Fatal(err)
	}
	var fe *data.FileError
	if err := f.Read(1, make([]int32, 3)); !errors.As(err, &fe) || fe.Offset != 5 {
		t.Errorf("file cut after Open: %v", err)
	}
	write(t, dir, "b.bin", []uint16{1, 2, 77, 4})
	if err := f.Read(1, make([]int32, 3)); !errors.As(err, &fe) || fe.Token != 2 {
		t.Errorf("file changed after Open: %v", err)
	}
}

func TestReadAcrossBlocks(t *testing.T) {
	ids := make([]uint16, 80_000)
	for i := range ids {
		ids[i] = uint16(i * 7)
	}
	f, err := data.Open(write(t, t.TempDir(), "a.bin", ids), 1<<16)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	got := make([]int32, 70_000)
	if err := f.Read(5_000, got); err != nil {
		t.Fatal(err)
	}
	for i, id := range got {
		if id != int32(ids[5_000+i]) {
			t.Fatalf("token %d is %d, want %d", 5_000+i, id, ids[5_000+i])
		}
	}
}

func TestJoinAndPart(t *testing.T) {
	j := data.Join(data.Memory{0, 1}, data.Memory{}, data.Memory{2, 3, 4}, data.Part(data.Memory{9, 5, 6, 9}, 1, 3), data.Memory{7})
	for at := 0; at <= j.Len(); at++ {
		for n := 0; n <= j.Len()-at; n++ {
			got := make([]int32, n)
			if err := j.Read(at, got); err != nil {
				t.Fatalf("read %d tokens at %d: %v", n, at, err)
			}
			for i, id := range got {
				if int(id) != at+i {
					t.Fatalf("read %d tokens at %d: %v", n, at, got)
				}
			}
		}
	}
	for _, s := range []data.Tokens{j, data.Part(j, 1, 4), data.Memory{1}, data.Join()} {
		for _, at := range []int{-1, s.Len()} {
			if err := s.Read(at, make([]int32, 1)); !errors.Is(err, data.ErrRange) {
				t.Errorf("%T: read at %d of %d: %v", s, at, s.Len(), err)
			}
		}
	}
}

func TestText(t *testing.T) {
	for _, c := range []struct {
		tokens []int32
		want   string
	}{
		{nil, ""},
		{[]int32{'a', 0xc3, 0xa9, '\n'}, "aé\n"},
		{[]int32{'a', 0xff, 'b', 0xc3}, "a\uFFFDb\uFFFD"},
		{[]int32{1, 256, 50256}, "1 256 50256"},
		{[]int32{-1}, "-1"},
	} {
		if got := data.Text(c.tokens); got != c.want {
			t.Errorf("Text(%v) = %q, want %q", c.tokens, got, c.want)
		}
	}
}
