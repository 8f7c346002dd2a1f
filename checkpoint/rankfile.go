package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strconv"
	"sync/atomic"

	"zeroshard/checkpoint/safetensors"
	"zeroshard/internal/pages"
)

const (
	// A checksum covers a block, and a reader reads whole blocks: small ones in small files, so that damage is known more closely; large ones in
	// large files, since that is how disks are fast.
	minBlock, maxBlock = 64 << 10, 4 << 20
	// chunkBytes is what is written at a time: whole blocks, and a multiple of what direct I/O asks for.
	chunkBytes = maxBlock
	// chunks of a file are in memory at a time: one is filled and summed while the other is written.
	chunks = 2
	// BufferBytes is the memory that a rank's file takes while it is written.
	BufferBytes = chunks * chunkBytes
)

// blockOf is the size of a file's blocks: a power of two, 64 blocks a file or more where they are not the largest.
func blockOf(head int, pieces []Piece) int64 {
	bytes, block := int64(head), int64(minBlock)
	for _, p := range pieces {
		bytes += 4 * int64(p.Len)
	}
	for block < maxBlock && bytes >= 128*block {
		block *= 2
	}
	return block
}

// startKey is the metadata of a tensor that is a part: the element at which it starts.
func startKey(tensor string) string { return "start:" + tensor }

// rankFile writes the file of one rank: the header, then its pieces in the order in which they were announced. What is filled and
// what is written overlap.
type rankFile struct {
	name   string
	file   File
	pieces []Piece // still to come
	memory []byte
	chunk  []byte // being filled: its length is what is filled
	free   chan []byte
	full   chan []byte
	done   chan struct{}

	block int64
	sums  Sums // of what has been handed to the writing goroutine

	written int64 // by the writing goroutine: its own until done
	failed  atomic.Pointer[error]
}

func rankFileName(rank int) string { return fmt.Sprintf("rank-%05d.safetensors", rank) }

// newRankFile creates the file and queues its header.
func newRankFile(v *Save, rank int, pieces []Piece) (_ *rankFile, err error) {
	head, err := v.header(rank, pieces)
	if err != nil {
		return nil, err
	}
	f := &rankFile{name: rankFileName(rank), pieces: pieces, block: blockOf(len(head), pieces), free: make(chan []byte, chunks), full: make(chan []byte, chunks),
		done: make(chan struct{})}
	if f.memory, err = pages.Map(BufferBytes); err != nil {
		return nil, err
	}
	if f.file, err = v.store.fs.Create(path.Join(v.tmp, f.name)); err != nil {
		return nil, errors.Join(err, pages.Unmap(f.memory))
	}
	for i := range chunks {
		f.free <- f.memory[i*chunkBytes : (i+1)*chunkBytes : (i+1)*chunkBytes]
	}
	f.chunk = (<-f.free)[:0]
	go f.drain()
	f.append(head)
	return f, nil
}

// header is the file's safetensors header.
func (v *Save) header(rank int, pieces []Piece) ([]byte, error) {
	meta := map[string]string{"format": "zeroshard checkpoint " + strconv.Itoa(Format), "step": strconv.Itoa(v.m.Step), "rank": strconv.Itoa(rank)}
	tensors := make([]safetensors.Tensor, len(pieces))
	for i, p := range pieces {
		shape, ok := v.shapes[p.Param]
		if !ok {
			return nil, fmt.Errorf("%w: the manifest does not list parameter %q", ErrMismatch, p.Param)
		}
		t := safetensors.Tensor{Name: p.key(), DType: safetensors.F32, Shape: []int64{int64(p.Len)}}
		if p.From == 0 && p.Len == shape.Len() {
			t.Shape = t.Shape[:0]
			for _, d := range shape.Shape {
				t.Shape = append(t.Shape, int64(d))
			}
		} else {
			meta[startKey(t.Name)] = strconv.Itoa(p.From)
		}
		tensors[i] = t
	}
	return safetensors.Marshal(tensors, meta)
}

func (f *rankFile) append(p []byte) {
	for len(p) > 0 {
		n := copy(f.room(), p)
		f.chunk, p = f.chunk[:len(f.chunk)+n], p[n:]
	}
}

// room is what is left of the chunk, or a new one.
func (f *rankFile) room() []byte {
	if len(f.chunk) == cap(f.chunk) {
		f.hand(f.chunk)
		f.chunk = (<-f.free)[:0]
	}
	return f.chunk[len(f.chunk):cap(f.chunk)]
}

// hand sums a chunk and gives it to be written. Whoever fills sums too: the disk should not wait for it.
func (f *rankFile) hand(p []byte) {
	for b := range slices.Chunk(p, int(f.block)) {
		f.sums = append(f.sums, sum(b))
	}
	f.full <- p
}

// write appends the next piece, whose values read gives.
func (f *rankFile) write(p Piece, read func(lo int, dst []float32) error) error {
	if len(f.pieces) == 0 || f.pieces[0] != p {
		return fmt.Errorf("%w: %s comes out of turn", ErrSave, p.key())
	}
	f.pieces = f.pieces[1:]
	for lo := 0; lo < p.Len; {
		room := f.room()
		n := min(len(room)/4, p.Len-lo)
		if err := fill(room[:4*n], func(dst []float32) error { return read(lo, dst) }); err != nil {
			return err
		}
		f.chunk, lo = f.chunk[:len(f.chunk)+4*n], lo+n
		if err := f.failed.Load(); err != nil {
			return *err
		}
	}
	return nil
}

// drain writes chunks until there are no more. After an error it throws them away.
func (f *rankFile) drain() {
	defer close(f.done)
	for p := range f.full {
		if f.failed.Load() == nil {
			if err := f.put(p); err != nil {
				f.failed.Store(&err)
			}
		}
		f.free <- p[:chunkBytes:chunkBytes]
	}
}

func (f *rankFile) put(p []byte) error {
	n, err := f.file.Write(p)
	f.written += int64(n)
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	return err
}

// finish writes what is left, flushes and closes.
func (f *rankFile) finish() (Entry, error) {
	var err error
	if len(f.pieces) > 0 {
		err = fmt.Errorf("%w: %d pieces did not come", ErrSave, len(f.pieces))
	}
	if len(f.chunk) > 0 && err == nil {
		f.hand(f.chunk)
	}
	close(f.full)
	<-f.done
	if failed := f.failed.Load(); failed != nil {
		err = *failed
	}
	if err == nil {
		err = f.file.Sync()
	}
	err = errors.Join(err, f.file.Close(), pages.Unmap(f.memory))
	if err != nil {
		return Entry{}, fmt.Errorf("%s: %w", f.name, err)
	}
	return Entry{Name: f.name, Bytes: f.written, Block: f.block, Sums: f.sums}, nil
}
