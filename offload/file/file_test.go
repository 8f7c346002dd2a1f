package file_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"zeroshard/device"
	"zeroshard/offload"
	"zeroshard/offload/file"
	"zeroshard/offload/tiertest"
)

func TestTier(t *testing.T) {
	for _, c := range []struct {
		name string
		opts file.Options
	}{
		{"as it comes", file.Options{}},
		{"page cache", file.Options{Direct: file.Never}},
		{"small blocks, one at a time", file.Options{BlockBytes: 4 * 4096, Concurrency: 1}},
		{"crooked blocks", file.Options{BlockBytes: 5 * 4096, Concurrency: 3}},
	} {
		t.Run(c.name, func(t *testing.T) {
			tiertest.Run(t, func(t testing.TB) offload.Tier {
				c.opts.Dir, c.opts.Rank = emptied(t), 2
				return file.New(c.opts)
			})
		})
	}
}

// emptied is a folder that must be empty at the end.
func emptied(t testing.TB) string {
	dir := t.TempDir()
	t.Cleanup(func() {
		left, err := os.ReadDir(dir)
		if err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	})
	return dir
}

var key = offload.Key{Flat: "h.3", State: "m"}

// reserved returns a tier with bytes for key.
func reserved(t testing.TB, o file.Options, bytes int64) *file.Tier {
	t.Helper()
	if o.Dir == "" {
		o.Dir = emptied(t)
	}
	x := file.New(o)
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := x.Reserve(context.Background(), []offload.Extent{{Key: key, Bytes: bytes}}); err != nil {
		t.Fatal(err)
	}
	return x
}

type memory []byte

func (m memory) Size() int64   { return int64(len(m)) }
func (m memory) Bytes() []byte { return m }

func buffer(raw []byte) device.Buffer {
	return device.Buffer{Mem: memory(raw), Len: len(raw) / 2, DType: device.BF16}
}

func put(x offload.Tier, off int64, src []byte) error {
	return x.Put(context.Background(), nil, key, off, buffer(src))
}

func get(x offload.Tier, off int64, dst []byte) error {
	return x.Get(context.Background(), nil, key, off, buffer(dst))
}

func pattern(n int, seed uint64) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(seed)}).Read(b)
	return b
}

func mustPut(t testing.TB, x offload.Tier, off int64, src []byte) {
	t.Helper()
	if err := put(x, off, src); err != nil {
		t.Fatal(err)
	}
}

func wantBytes(t testing.TB, x offload.Tier, off int64, want []byte) {
	t.Helper()
	got := make([]byte, len(want))
	if err := get(x, off, got); err != nil {
		t.Error(err)
	} else if !bytes.Equal(got, want) {
		t.Errorf("%d bytes at %d are not what was put", len(want), off)
	}
}

// wantCallError demands an error that wraps is and names all that a person needs.
func wantCallError(t testing.TB, x *file.Tier, err, is error, off int64) {
	t.Helper()
	var call *offload.CallError
	if !errors.Is(err, is) || !errors.As(err, &call) {
		t.Errorf("%v, want a CallError for %v", err, is)
		return
	}
	if call.Off != off || call.Key != key {
		t.Errorf("%+v, want offset %d of %v", call, off, key)
	}
	for _, want := range []string{"rank 5", "flat h.3", "state m", x.Path(), fmt.Sprint(off), call.Verb} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
}

// dataPath is the only data file of x.
func dataPath(t testing.TB, x *file.Tier) string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(x.Path(), "*.tier"))
	if err != nil || len(paths) != 1 {
		t.Fatalf("data files %v, %v", paths, err)
	}
	return paths[0]
}

const testBlock = 16 << 10

func TestFlippedBit(t *testing.T) {
	for _, direct := range []file.Direct{file.Auto, file.Never} {
		t.Run(fmt.Sprint(direct), func(t *testing.T) {
			const size = 4*testBlock + 1024
			x := reserved(t, file.Options{Rank: 5, BlockBytes: testBlock, Direct: direct}, size)
			all := pattern(size, 1)
			mustPut(t, x, 0, all)
			for _, at := range []int64{2*testBlock + 77, 4*testBlock + 1023} {
				flip(t, dataPath(t, x), at)
				block := at / testBlock * testBlock
				for _, r := range [][2]int64{{0, size}, {block, min(block+testBlock, size)}, {at/2*2 - 512, at / 2 * 2}, {block, block + 2}} {
					wantCallError(t, x, get(x, r[0], make([]byte, r[1]-r[0])), offload.ErrCorrupt, block)
				}
				wantCallError(t, x, put(x, block+2, all[:4]), offload.ErrCorrupt, block) // the rest of the block is lost
				wantBytes(t, x, 0, all[:2*testBlock])
				mustPut(t, x, block, all[block:min(block+testBlock, size)])
				wantBytes(t, x, 0, all)
			}
		})
	}
}

func flip(t testing.TB, path string, at int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var b [1]byte
	_, err = f.ReadAt(b[:], at)
	b[0] ^= 0x10
	_, err2 := f.WriteAt(b[:], at)
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
}

func TestTruncatedFile(t *testing.T) {
	for _, length := range []int64{0, 100, testBlock, testBlock + 4096, testBlock + 5000} {
		x := reserved(t, file.Options{Rank: 5, BlockBytes: testBlock}, 2*testBlock)
		all := pattern(2*testBlock, 1)
		mustPut(t, x, 0, all)
		if err := os.Truncate(dataPath(t, x), length); err != nil {
			t.Fatal(err)
		}
		if length == testBlock {
			wantBytes(t, x, 0, all[:testBlock])
		}
		err := get(x, testBlock, make([]byte, testBlock))
		if !strings.Contains(fmt.Sprint(err), "unexpected EOF") {
			t.Errorf("file of %d bytes: %v", length, err)
			continue
		}
		wantCallError(t, x, err, errors.Unwrap(err), testBlock)
	}
}

func TestFileExistsWhileOpen(t *testing.T) {
	dir := emptied(t)
	x := file.New(file.Options{Dir: dir, Rank: 7})
	extents := []offload.Extent{
		{Key: offload.Key{Flat: "h.0", State: "m"}, Bytes: 512}, {Key: offload.Key{Flat: "h.0", State: "carry 1"}, Bytes: 4608},
		{Key: offload.Key{Flat: "h.1", State: "m"}, Bytes: 512}, {Key: offload.Key{Flat: "h.1", State: "carry 1"}, Bytes: 512},
	}
	if err := x.Reserve(context.Background(), extents); err != nil {
		t.Fatal(err)
	}
	want := map[string]int64{"lock": 0, "00-m.tier": 2 * 4096, "01-carry%201.tier": 3 * 4096}
	entries, err := os.ReadDir(x.Path())
	if err != nil || len(entries) != len(want) || filepath.Dir(x.Path()) != dir || !strings.Contains(x.Path(), "rank-0007") {
		t.Errorf("%v in %s, %v", entries, x.Path(), err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || info.Size() != want[e.Name()] || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v: want %d bytes", info, err, want[e.Name()])
		}
	}
	if err := x.Close(); err != nil || x.Path() != "" {
		t.Errorf("%q, %v after Close", x.Path(), err)
	}
}

func TestBadOptions(t *testing.T) {
	dir := t.TempDir()
	for name, o := range map[string]file.Options{
		"no folder":       {},
		"negative rank":   {Dir: dir, Rank: -1},
		"crooked blocks":  {Dir: dir, BlockBytes: 4097},
		"negative blocks": {Dir: dir, BlockBytes: -4096},
		"huge blocks":     {Dir: dir, BlockBytes: 1 << 40},
		"concurrency":     {Dir: dir, Concurrency: -1},
		"direct":          {Dir: dir, Direct: 9},
	} {
		x := file.New(o)
		if err := x.Reserve(context.Background(), nil); !errors.Is(err, offload.ErrArgument) {
			t.Errorf("%s: %v, want ErrArgument", name, err)
		}
		if err := x.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestBadFolder(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(dir, "missing"), filepath.Join(dir, "missing", "more"), plain, filepath.Join(plain, "below")} {
		x := file.New(file.Options{Dir: path, Rank: 4})
		err := x.Reserve(context.Background(), []offload.Extent{{Key: key, Bytes: 8}})
		var pathErr *fs.PathError
		if !errors.As(err, &pathErr) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "rank 4") {
			t.Errorf("%s: %v, want a PathError that names it", path, err)
		}
		if x.Used() != 0 || x.Staging() != 0 || x.Path() != "" || x.Close() != nil {
			t.Errorf("%s: something was taken", path)
		}
	}
}

func TestStaging(t *testing.T) {
	for _, c := range []struct {
		o    file.Options
		want int64
	}{{file.Options{}, 8 << 20}, {file.Options{BlockBytes: 8192, Concurrency: 3}, 3 * 8192}} {
		x := reserved(t, c.o, 512)
		if c.o.Staging() != c.want || x.Staging() != c.want {
			t.Errorf("%d planned, %d taken, want %d", c.o.Staging(), x.Staging(), c.want)
		}
		if x.Close(); x.Staging() != 0 {
			t.Errorf("%d bytes after Close", x.Staging())
		}
	}
}

// Only goroutines of helpers may cost an allocation.
func TestFewAllocations(t *testing.T) {
	const concurrency = 3
	x := reserved(t, file.Options{BlockBytes: testBlock, Concurrency: concurrency}, 8*testBlock)
	b := buffer(pattern(8*testBlock, 1))
	for name, c := range map[string]struct {
		b    device.Buffer
		most float64
	}{"one block": {b.Slice(0, testBlock/2), 0}, "eight blocks": {b, 4 * concurrency}} {
		got := testing.AllocsPerRun(20, func() {
			if x.Put(context.Background(), nil, key, 0, c.b) != nil || x.Get(context.Background(), nil, key, 0, c.b) != nil {
				t.Error("refused")
			}
		})
		if got > c.most {
			t.Errorf("%s: %v allocations a put and a get, want %v at most", name, got, c.most)
		}
	}
}

// Ranks and runs that start and end in one folder at once must leave each other alone.
func TestSharedFolder(t *testing.T) {
	dir := emptied(t)
	var ranks sync.WaitGroup
	for rank := range 8 {
		ranks.Go(func() {
			for round := range 6 {
				x := file.New(file.Options{Dir: dir, Rank: rank, BlockBytes: 4096, Concurrency: 1})
				if err := x.Reserve(context.Background(), []offload.Extent{{Key: key, Bytes: 4096}}); err != nil {
					t.Error(err)
					return
				}
				mustPut(t, x, 0, pattern(4096, uint64(rank*10+round)))
				wantBytes(t, x, 0, pattern(4096, uint64(rank*10+round)))
				if len(x.Recovered()) > 0 {
					t.Errorf("took %v for left behind", x.Recovered())
				}
				if err := x.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	ranks.Wait()
}

// A sweep takes what is a left-over without doubt, and nothing else.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{
		"zeroshard-tier-empty/", "zeroshard-tier-dead/lock", "zeroshard-tier-dead/00-m.tier",
		"zeroshard-tier-nolock/00-m.tier", "zeroshard-tier-more/lock", "zeroshard-tier-more/notes.txt", "other/lock", "zeroshard-tier-file",
	} {
		full := filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(full), 0o700); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(path, "/") {
			err := os.MkdirAll(full, 0o700)
			if err != nil {
				t.Fatal(err)
			}
		} else if err := os.WriteFile(full, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	x := reserved(t, file.Options{Dir: dir}, 8)
	if got := x.Recovered(); len(got) != 1 || got[0] != filepath.Join(dir, "zeroshard-tier-dead") {
		t.Errorf("recovered %v", got)
	}
	for _, path := range []string{"zeroshard-tier-empty", "zeroshard-tier-dead"} {
		if _, err := os.Stat(filepath.Join(dir, path)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is there: %v", path, err)
		}
	}
	for _, path := range []string{"zeroshard-tier-nolock/00-m.tier", "zeroshard-tier-more/notes.txt", "other/lock", "zeroshard-tier-file"} {
		if _, err := os.Stat(filepath.Join(dir, path)); err != nil {
			t.Errorf("%s was removed: %v", path, err)
		}
	}
}

// FuzzTier makes random calls and compares with a Go slice.
func FuzzTier(f *testing.F) {
	f.Add([]byte{0, 0, 255, 1, 8, 8, 0, 200, 9, 1, 7, 3}, uint16(5000))
	f.Add([]byte{0, 255, 255, 1, 0, 255}, uint16(3*4096))
	f.Fuzz(func(t *testing.T, calls []byte, size uint16) {
		dir := t.TempDir()
		x := reserved(t, file.Options{Dir: dir, BlockBytes: 4096, Concurrency: 2}, int64(size))
		model := make([]byte, size)
		for seed := uint64(0); len(calls) >= 3; calls, seed = calls[3:], seed+1 {
			off := int(calls[1]) * int(size) / 256
			n := int(calls[2]) * (int(size) - off) / 255 &^ 1
			if calls[0]%2 == 0 {
				copy(model[off:off+n], pattern(n, seed))
				mustPut(t, x, int64(off), model[off:off+n])
			}
			wantBytes(t, x, int64(off), model[off:off+n])
		}
		wantBytes(t, x, 0, model[:len(model)&^1])
	})
}
