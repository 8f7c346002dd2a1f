package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"path"
	"sync"
)

// cachedBlocks bounds the memory of a reader: blocks that have been checked and may be asked for again, since a rank asks for its
// elements in smaller parts than a block.
const cachedBlocks = 32

// blocks reads files of a step block by block: each block is checked as it comes from the disk, and a few are kept.
type blocks struct {
	dir   string
	files []*blockFile
	mu    sync.Mutex
	kept  map[blockKey]*block
	clock int64 // of use
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
	var errs []error
	for _, f := range b.files {
		errs = append(errs, f.f.Close())
	}
	return errors.Join(errs...)
}

// file is file i as one that can be read at any place.
func (b *blocks) file(i int) io.ReaderAt { return &blockReader{b, i} }

type blockReader struct {
	*blocks
	i int
}

// ReadAt reads through the checked blocks. The error of a bad block is a *CorruptError.
func (r *blockReader) ReadAt(p []byte, off int64) (n int, err error) {
	f := r.files[r.i]
	if off < 0 || off > f.Bytes {
		return 0, fmt.Errorf("checkpoint: %s: read at byte %d of %d", f.path, off, f.Bytes)
	}
	for n < len(p) && off < f.Bytes {
		k := off / f.Block
		data, err := r.block(r.i, k)
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

// block returns a checked block: from those that are kept, or from the disk, for which several goroutines wait together.
func (b *blocks) block(file int, k int64) ([]byte, error) {
	key := blockKey{int64(file), k}
	b.mu.Lock()
	e := b.kept[key]
	if e == nil {
		e = &block{}
		if len(b.kept) >= cachedBlocks {
			b.forget()
		}
		b.kept[key] = e
	}
	b.clock++
	e.used = b.clock
	b.mu.Unlock()
	e.once.Do(func() { e.data, e.err = b.files[file].read(k) })
	return e.data, e.err
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

// read reads and checks block k.
func (f *blockFile) read(k int64) ([]byte, error) {
	off := k * f.Block
	data := make([]byte, min(f.Block, f.Bytes-off))
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
