package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"path"
	"sync"

	"zeroshard/internal/pages"
)

const (
	// ahead is how many blocks are fetched behind the one that is asked for: those that the read needs, and, where the file is read from start
	// to end, the one that comes next.
	ahead = 1
	// keptEach blocks for each reader at work, and at least keptLeast, stay in memory: checked, and likely to be asked for again, since a rank asks
	// for its elements in parts that begin and end inside blocks. No more, so that they stay in the caches of the CPU.
	keptEach, keptLeast = 4, 6
)

// blocks reads files of a step block by block: each block is checked as it comes from the disk, and a few are kept, the longest unused goes
// first. A block is fetched once, whoever asks for it meanwhile waits; its error stays with it as long as it is kept.
type blocks struct {
	dir   string
	files []*blockFile
	mu    sync.Mutex
	kept  map[blockKey]*block
	free  [][]byte       // memory of blocks that were dropped
	all   [][]byte       // mapped memory
	busy  int            // readers at work
	most  int            // of them so far
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
	once    sync.Once
	data    []byte
	err     error
	used    int64 // when
	users   int   // who hold it now: its memory is theirs too
	dropped bool
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
	for _, m := range b.all {
		errs = append(errs, pages.Unmap(m))
	}
	b.kept, b.free, b.all = nil, nil, nil
	for _, f := range b.files {
		errs = append(errs, f.f.Close())
	}
	return errors.Join(errs...)
}

// file is file i as one that can be read at any place. What is fetched ahead ends at byte end.
func (b *blocks) file(i int, end int64) io.ReaderAt { return &blockReader{b, i, end} }

type blockReader struct {
	*blocks
	i     int
	until int64
}

func (b *blocks) begin() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.busy++
	b.most = max(b.most, b.busy)
}

func (b *blocks) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.busy--
}

// ReadAt reads through the checked blocks. The error of a bad block is a *CorruptError.
func (r *blockReader) ReadAt(p []byte, off int64) (n int, err error) {
	f := r.files[r.i]
	if off < 0 || off > f.Bytes {
		return 0, fmt.Errorf("checkpoint: %s: read at byte %d of %d", f.path, off, f.Bytes)
	}
	r.begin()
	defer r.end()
	last := (off + int64(len(p)) - 1) / f.Block
	for n < len(p) && off < f.Bytes {
		k := off / f.Block
		b := r.block(r.i, k, last, r.until)
		if b.err == nil {
			c := copy(p[n:], b.data[off-k*f.Block:])
			n, off = n+c, off+int64(c)
		}
		err := b.err
		r.release(b)
		if err != nil {
			return n, err
		}
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// block returns a checked block, from those that are kept or from the disk, and begins to fetch those behind it: up to block last, which the
// caller will ask for next, and where the block before is still kept (so somebody reads from start to end) the next, up to byte until.
// Release it after use.
func (b *blocks) block(file int, k, last, until int64) *block {
	key, f := blockKey{int64(file), k}, b.files[file]
	b.mu.Lock()
	e, _ := b.keep(key)
	_, sequential := b.kept[blockKey{key.file, k - 1}]
	for next := k + 1; next <= k+ahead && next < int64(len(f.Sums)) && (next <= last || sequential && next*f.Block < until); next++ {
		n, fresh := b.keep(blockKey{key.file, next})
		if !fresh {
			n.users--
			continue
		}
		b.going.Go(func() {
			b.load(n, f, next)
			b.release(n)
		})
	}
	b.mu.Unlock()
	b.load(e, f, k)
	return e
}

// keep returns the place of a block among those that are kept, for one more user; fresh says that nobody has asked for it yet.
func (b *blocks) keep(key blockKey) (e *block, fresh bool) {
	b.clock++
	if e = b.kept[key]; e != nil {
		e.used = b.clock
		e.users++
		return e, false
	}
	if len(b.kept) >= max(keptEach*b.most, keptLeast) {
		b.forget()
	}
	e = &block{used: b.clock, users: 1}
	b.kept[key] = e
	return e, true
}

// load reads the block, once; whoever comes meanwhile waits.
func (b *blocks) load(e *block, f *blockFile, k int64) {
	e.once.Do(func() {
		var m []byte
		if m, e.err = b.memory(f.room()); e.err == nil {
			e.data, e.err = f.read(k, m)
		}
	})
}

// release ends the use of a block.
func (b *blocks) release(e *block) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e.users--; e.users == 0 && e.dropped && e.data != nil {
		b.free = append(b.free, e.data)
	}
}

// memory is room for a block: what another has left, or new pages, which direct I/O may use.
func (b *blocks) memory(n int64) ([]byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if last := len(b.free) - 1; last >= 0 {
		m := b.free[last]
		b.free = b.free[:last]
		if int64(cap(m)) >= n {
			return m[:n], nil
		}
	}
	m, err := pages.Map(n)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: memory of a block: %w", err)
	}
	b.all = append(b.all, m)
	return m[:n], nil
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
	e := b.kept[oldest]
	delete(b.kept, oldest)
	if e.dropped = true; e.users == 0 && e.data != nil {
		b.free = append(b.free, e.data)
	}
}

// room is the bytes of the file's largest block.
func (f *blockFile) room() int64 { return min(f.Block, f.Bytes) }

// read reads block k into memory, and checks it.
func (f *blockFile) read(k int64, memory []byte) ([]byte, error) {
	off := k * f.Block
	data := memory[:min(f.Block, f.Bytes-off)]
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
