package file_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"zeroshard/offload"
	"zeroshard/offload/file"
)

// faulty is a disk whose calls first ask a hook, which may fail them or shorten them to n bytes.
type faulty struct {
	file.Disk
	hook func(verb string, off int64, n int) (int, error)
}

func (d *faulty) ReadAt(p []byte, off int64) (int, error) {
	n, err := d.hook("read", off, len(p))
	if err != nil {
		return 0, err
	}
	if n == 0 {
		return 0, nil
	}
	return d.Disk.ReadAt(p[:n], off)
}

func (d *faulty) WriteAt(p []byte, off int64) (int, error) {
	n, err := d.hook("write", off, len(p))
	if err != nil {
		return 0, err
	}
	if n == 0 {
		return 0, nil
	}
	return d.Disk.WriteAt(p[:n], off)
}

func (d *faulty) Reserve(bytes int64) error {
	if _, err := d.hook("reserve", 0, int(bytes)); err != nil {
		return err
	}
	return d.Disk.Reserve(bytes)
}

// faultyTier has blocks of testBlock, and calls *hook at each call to the disk.
func faultyTier(t testing.TB, dir string, hook *func(verb string, off int64, n int) (int, error)) *file.Tier {
	x := file.New(file.Options{Dir: dir, Rank: 5, BlockBytes: testBlock, Concurrency: 3})
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Error(err)
		}
	})
	x.SetOpener(func(path string, d file.Direct) (file.Disk, error) {
		disk, err := file.OpenDisk(path, d)
		return &faulty{disk, func(verb string, off int64, n int) (int, error) { return (*hook)(verb, off, n) }}, err
	})
	return x
}

func whole(_ string, _ int64, n int) (int, error) { return n, nil }

// fails returns a hook that fails one verb in one block.
func fails(verb string, block int64, err error) func(string, int64, int) (int, error) {
	return func(v string, off int64, n int) (int, error) {
		if v == verb && off/testBlock == block {
			return 0, err
		}
		return n, nil
	}
}

func reserve(x offload.Tier, bytes int64) error {
	return x.Reserve(context.Background(), []offload.Extent{{Key: key, Bytes: bytes}})
}

func TestReadFails(t *testing.T) {
	hook := whole
	x := faultyTier(t, emptied(t), &hook)
	const size = 4 * testBlock
	if err := reserve(x, size); err != nil {
		t.Fatal(err)
	}
	all := pattern(size, 1)
	mustPut(t, x, 0, all)
	hook = fails("read", 2, syscall.EIO)
	wantCallError(t, x, get(x, 0, make([]byte, size)), syscall.EIO, 2*testBlock)
	wantCallError(t, x, put(x, 2*testBlock+2, all[:2]), syscall.EIO, 2*testBlock) // reads what it does not change
	wantBytes(t, x, 0, all[:2*testBlock])
	hook = whole
	wantBytes(t, x, 0, all) // the failed put has changed nothing
}

// After a failed write the block is neither old nor new: no call may give it out until a put covers it.
func TestWriteFails(t *testing.T) {
	for _, failed := range []int64{0, 1, 5} {
		t.Run(fmt.Sprint(failed), func(t *testing.T) {
			hook := whole
			x := faultyTier(t, emptied(t), &hook)
			const size = 6 * testBlock
			if err := reserve(x, size); err != nil {
				t.Fatal(err)
			}
			before, after := pattern(size, 1), pattern(size, 2)
			mustPut(t, x, 0, before)
			hook = fails("write", failed, syscall.EIO)
			wantCallError(t, x, put(x, 0, after), syscall.EIO, failed*testBlock)
			hook = whole
			for b := range int64(6) {
				got := make([]byte, testBlock)
				err := get(x, b*testBlock, got)
				if err == nil && string(got) != string(after[b*testBlock:][:testBlock]) {
					t.Errorf("block %d has neither an error nor the new bytes", b)
				}
				if b == failed || err != nil {
					wantCallError(t, x, err, offload.ErrTorn, b*testBlock)
				}
			}
			wantCallError(t, x, put(x, failed*testBlock, after[:2]), offload.ErrTorn, failed*testBlock)
			mustPut(t, x, 0, after)
			wantBytes(t, x, 0, after)
		})
	}
}

// Blocks before the put's stay as they are, whatever happens to it.
func TestCancelledPut(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	hook := func(verb string, off int64, n int) (int, error) {
		if verb == "write" && off == 2*testBlock {
			cancel()
		}
		return n, nil
	}
	x := faultyTier(t, emptied(t), &hook)
	const size = 64 * testBlock
	if err := reserve(x, size); err != nil {
		t.Fatal(err)
	}
	src := pattern(size, 1)
	err := x.Put(ctx, nil, key, testBlock, buffer(src[testBlock:]))
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("%v, want the context's error", err)
	}
	wantBytes(t, x, 0, make([]byte, testBlock))
	torn := 0
	for b := int64(1); b < 64; b++ {
		got := make([]byte, testBlock)
		switch err := get(x, b*testBlock, got); {
		case errors.Is(err, offload.ErrTorn):
			torn++
		case err != nil || string(got) != string(src[b*testBlock:][:testBlock]):
			t.Errorf("block %d: %v, or old bytes", b, err)
		}
	}
	if torn < 50 {
		t.Errorf("%d blocks are torn: the put went on after it was cancelled", torn)
	}
}

func TestShortCalls(t *testing.T) {
	for _, c := range []struct {
		name string
		n    func(n int) int
		want [2]error // of a put, of a get
	}{
		{"a sector at a time", func(n int) int { return min(n, 4096) }, [2]error{}},
		{"nothing", func(int) int { return 0 }, [2]error{io.ErrShortWrite, io.ErrUnexpectedEOF}},
	} {
		t.Run(c.name, func(t *testing.T) {
			hook := whole
			x := faultyTier(t, emptied(t), &hook)
			if err := reserve(x, testBlock); err != nil {
				t.Fatal(err)
			}
			all := pattern(testBlock, 1)
			short := func(_ string, _ int64, n int) (int, error) { return c.n(n), nil }
			for i, call := range []func() error{func() error { return put(x, 0, all) }, func() error { return get(x, 0, make([]byte, testBlock)) }} {
				hook = short
				if err := call(); !errors.Is(err, c.want[i]) || (err == nil) != (c.want[i] == nil) {
					t.Errorf("call %d: %v, want %v", i, err, c.want[i])
				}
				hook = whole
				mustPut(t, x, 0, all)
				wantBytes(t, x, 0, all)
			}
		})
	}
}

func TestShortCallInsideSector(t *testing.T) {
	hook := func(_ string, _ int64, n int) (int, error) { return min(n, 100), nil }
	x := faultyTier(t, emptied(t), &hook)
	if err := reserve(x, testBlock); err != nil {
		t.Fatal(err)
	}
	if !x.Direct() {
		t.Skip("the file system takes no direct I/O")
	}
	if err := put(x, 0, pattern(testBlock, 1)); err == nil {
		t.Error("100 bytes were taken for a sector")
	}
}

// A disk that fills up while room is taken must leave nothing behind.
func TestReserveFails(t *testing.T) {
	for _, c := range []struct {
		err   error
		space bool
	}{{syscall.ENOSPC, true}, {syscall.EIO, false}} {
		for fail := 1; fail <= 3; fail++ {
			dir, calls := emptied(t), 0
			hook := func(verb string, _ int64, n int) (int, error) {
				if verb == "reserve" {
					calls++
				}
				if verb == "reserve" && calls == fail {
					return 0, &fs.PathError{Op: "fallocate", Path: "a path", Err: c.err}
				}
				return n, nil
			}
			x := faultyTier(t, dir, &hook)
			var extents []offload.Extent
			for _, state := range []string{"parameter", "m", "v"} {
				extents = append(extents, offload.Extent{Key: offload.Key{Flat: "h.0", State: state}, Bytes: 5000})
			}
			err := x.Reserve(context.Background(), extents)
			if !errors.Is(err, c.err) || errors.Is(err, offload.ErrSpace) != c.space {
				t.Fatalf("%v, want %v", err, c.err)
			}
			var space *offload.SpaceError
			if errors.As(err, &space) && (space.Bytes != 8192 || space.Rank != 5 || space.Total != 3*8192 || space.Taken != int64(fail-1)*8192 || space.Path == "") {
				t.Errorf("%+v", space)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 || x.Used() != 0 {
				t.Errorf("%v is left, %v", left, err)
			}
			if err := x.Reserve(context.Background(), extents); err != nil { // there is room now
				t.Error(err)
			}
		}
	}
}

// The disk sees no call that is not needed, and none twice.
func TestCalls(t *testing.T) {
	var reads, writes atomic.Int64
	hook := func(verb string, _ int64, n int) (int, error) {
		switch verb {
		case "read":
			reads.Add(1)
		case "write":
			writes.Add(1)
		}
		return n, nil
	}
	x := faultyTier(t, emptied(t), &hook)
	const size = 4*testBlock + 512
	if err := reserve(x, size); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name          string
		put           bool
		off, n        int64
		reads, writes int64
	}{
		{"get of what was never put", false, 0, size, 0, 0},
		{"put of a part of a block never put", true, 2, 4, 0, 1},
		{"get of a part", false, 0, 2, 1, 0},
		{"put of blocks", true, 0, 2 * testBlock, 0, 2},
		{"put of the last block", true, 4 * testBlock, 512, 0, 1},
		{"put across two blocks", true, testBlock - 4, 8, 2, 2},
		{"get of all", false, 0, size, 3, 0}, // two were never put
		{"nothing", true, 0, 0, 0, 0},
	} {
		reads.Store(0)
		writes.Store(0)
		call := get
		if c.put {
			call = put
		}
		err := call(x, c.off, pattern(int(c.n), 1))
		if err != nil || reads.Load() != c.reads || writes.Load() != c.writes {
			t.Errorf("%s: %d reads, %d writes, %v: want %d and %d", c.name, reads.Load(), writes.Load(), err, c.reads, c.writes)
		}
	}
}

// Calls of all keys together stay within Concurrency, and use it.
func TestConcurrency(t *testing.T) {
	var inFlight, most atomic.Int64
	meet, once := make(chan struct{}), sync.Once{}
	hook := func(verb string, _ int64, n int) (int, error) {
		if verb == "reserve" {
			return n, nil
		}
		now := inFlight.Add(1)
		for m := most.Load(); now > m && !most.CompareAndSwap(m, now); m = most.Load() {
		}
		if now == 3 {
			once.Do(func() { close(meet) })
		}
		select {
		case <-meet: // three are in flight at once
		case <-time.After(10 * time.Second):
			return 0, errors.New("test: three calls never met")
		}
		inFlight.Add(-1)
		return n, nil
	}
	x := faultyTier(t, emptied(t), &hook)
	keys := []offload.Key{{Flat: "a", State: "m"}, {Flat: "b", State: "m"}}
	err := x.Reserve(context.Background(), []offload.Extent{{Key: keys[0], Bytes: 4 * testBlock}, {Key: keys[1], Bytes: 4 * testBlock}})
	if err != nil {
		t.Fatal(err)
	}
	errs := make(chan error)
	for _, k := range keys {
		go func() { errs <- x.Put(context.Background(), nil, k, 0, buffer(pattern(4*testBlock, 1))) }()
	}
	if err := errors.Join(<-errs, <-errs); err != nil || most.Load() != 3 {
		t.Errorf("%d calls in flight at most, want 3, %v", most.Load(), err)
	}
}

// sparse is a disk that takes no room, for sizes that no test has.
type sparse struct {
	file.Disk
	path string
}

func (d sparse) Reserve(bytes int64) error { return os.Truncate(d.path, bytes) }

// Row 67 of the field's reports: sizes past 2^31.
func TestPast2To31(t *testing.T) {
	x := file.New(file.Options{Dir: emptied(t)})
	defer x.Close()
	x.SetOpener(func(path string, d file.Direct) (file.Disk, error) {
		disk, err := file.OpenDisk(path, d)
		return sparse{disk, path}, err
	})
	const size = 5<<30 + 512
	other := offload.Key{Flat: "h.4", State: "m"}
	if err := x.Reserve(context.Background(), []offload.Extent{{Key: other, Bytes: size}, {Key: key, Bytes: size}}); err != nil {
		t.Skipf("the file system has no sparse files of this size: %v", err)
	}
	for i, off := range []int64{0, 1<<31 - 512, 1 << 32, size - 1024} {
		mustPut(t, x, off, pattern(1024, uint64(i)))
	}
	for i, off := range []int64{0, 1<<31 - 512, 1 << 32, size - 1024} {
		wantBytes(t, x, off, pattern(1024, uint64(i)))
	}
	dst := make([]byte, 1024)
	if err := x.Get(context.Background(), nil, other, size-1024, buffer(dst)); err != nil || string(dst) != string(make([]byte, 1024)) {
		t.Errorf("the other key's last bytes changed, or %v", err)
	}
}
