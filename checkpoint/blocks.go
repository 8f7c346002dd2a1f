package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"path"
	"sync"
	"unsafe"

	"zeroshard/internal/pages"
)

const (
	// ahead is how many blocks are fetched before they are asked for, where a file is read from start to end, as a rank reads it.
	ahead = 6
	// keptBlocks a file, and at least and at most so many in all, stay in memory: checked, and likely to be asked for again, since a rank asks
	// for its elements in smaller parts than a block.
	keptBlocks, minKept, maxKept = ahead + 2, 16, 128
)

// blocks reads files of a step block by block: each block is checked as it comes from the disk, and a few are kept.
type blocks struct {
	dir   string
	files []*blockFile
	mu    sync.Mutex
	kept  map[blockKey]*block
	clock int64          // of use
	going sync.WaitGroup // fetches ahead
}

type blockFile struct {
	Entry
	f    Reader
	path string
}

type blockKey struct{ file, block int64 }

type block struct {
	once sync.Once
	data []byte
	err  error
	used int64
}

func openBlocks(fs FS, dir string, entries []Entry) (b *blocks, err error) {
	b = &blocks{dir: dir, kept: map[blockKey]*block{}}
	for _, e := range entries {
		at := path.Join(dir, e.Name)
		f, err := fs.Open(at)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("checkpoint: %w", err), b.close())
		}
		b.files = append(b.files, &blockFile{e, f, at})
		if f.Size() != e.Bytes {
			return nil, errors.Join(corrupt(at, "%d bytes, the manifest says %d", f.Size(), e.Bytes), b.close())
		}
	}
	return b, nil
}

func (b *blocks) close() error {
	b.going.Wait()
	var errs []error
	for _, f := range b.files {
		errs = append(errs, f.f.Close())
	}
	return errors.Join(errs...)
}

// file is file i as one that can be read at any place. What is fetched ahead ends at byte end.
func (b *blocks) file(i int, end int64) io.ReaderAt { return &blockReader{b, i, end} }

type blockReader struct {
	*blocks
	i   int
	end int64
}

// ReadAt reads through the checked blocks. The error of a bad block is a *CorruptError.
func (r *blockReader) ReadAt(p []byte, off int64) (n int, err error) {
	f := r.files[r.i]
	if off < 0 || off > f.Bytes {
		return 0, fmt.Errorf("checkpoint: %s: read at byte %d of %d", f.path, off, f.Bytes)
	}
	for n < len(p) && off < f.Bytes {
		k := off / f.Block
		data, err := r.block(r.i, k, r.end)
		if err != nil {
			return n, err
		}
		c := copy(p[n:], data[off-k*f.Block:])
		n, off = n+c, off+int64(c)
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// block returns a checked block: from those that are kept, or from the disk, for which several goroutines wait together. Blocks ahead are fetched up
// to byte end.
func (b *blocks) block(file int, k, end int64) ([]byte, error) {
	key := blockKey{int64(file), k}
	f := b.files[file]
	b.mu.Lock()
	e, _ := b.keep(key)
	if _, sequential := b.kept[blockKey{key.file, k - 1}]; sequential {
		for next := k + 1; next <= k+ahead && next*f.Block < end; next++ {
			if n, fresh := b.keep(blockKey{key.file, next}); fresh {
				b.going.Go(func() { n.load(f, next) })
			}
		}
	}
	b.mu.Unlock()
	e.load(f, k)
	return e.data, e.err
}

// keep returns the place of a block among those that are kept; fresh says that nobody has asked for it yet.
func (b *blocks) keep(key blockKey) (e *block, fresh bool) {
	b.clock++
	if e = b.kept[key]; e != nil {
		e.used = b.clock
		return e, false
	}
	if len(b.kept) >= min(max(keptBlocks*len(b.files), minKept), maxKept) {
		b.forget()
	}
	e = &block{used: b.clock}
	b.kept[key] = e
	return e, true
}

// load reads the block, once; whoever comes meanwhile waits.
func (e *block) load(f *blockFile, k int64) {
	e.once.Do(func() { e.data, e.err = f.read(k) })
}

// forget drops the block that was used longest ago.
func (b *blocks) forget() {
	var oldest blockKey
	at := b.clock + 1
	for k, e := range b.kept {
		if e.used < at {
			oldest, at = k, e.used
		}
	}
	delete(b.kept, oldest)
}

// aligned returns n bytes from the start of a page, as direct I/O asks for.
func aligned(n int64) []byte {
	raw := make([]byte, n+pages.Alignment)
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(raw))) % pages.Alignment
	return raw[skip:][:n:n]
}

// read reads and checks block k.
func (f *blockFile) read(k int64) ([]byte, error) {
	off := k * f.Block
	data := aligned(min(f.Block, f.Bytes-off))
	if n, err := f.f.ReadAt(data, off); n < len(data) {
		if errors.Is(err, io.EOF) {
			return nil, corrupt(f.path, "the file ends at byte %d, it should have %d bytes", off+int64(n), f.Bytes)
		}
		return nil, fmt.Errorf("checkpoint: %s: %w", f.path, err)
	}
	if sum(data) != f.Sums[k] {
		return nil, &CorruptError{File: f.path, Offset: off, Reason: fmt.Sprintf("the checksum of this block of %d bytes does not agree", len(data))}
	}
	return data, nil
}
