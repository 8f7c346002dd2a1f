package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"sync/atomic"

	"zeroshard/checkpoint/safetensors"
	"zeroshard/internal/pages"
)

const (
	// blockBytes is what one checksum covers.
	blockBytes = 1 << 20
	// chunkBytes is what is written at a time: whole blocks, and a multiple of what direct I/O asks for.
	chunkBytes = 4 << 20
	// chunks of a file are in memory at a time: one is filled while the other is summed and written.
	chunks = 2
	// BufferBytes is the memory that a rank's file takes while it is written.
	BufferBytes = chunks * chunkBytes
)

// startKey is the metadata of a tensor that is a part: the element at which it starts.
func startKey(tensor string) string { return "start:" + tensor }

// rankFile writes the file of one rank: the header, then its pieces in the order in which they were announced. What is filled and
// what is written overlap.
type rankFile struct {
	name   string
	file   File
	pieces []Piece // still to come
	memory []byte
	chunk  []byte // being filled
	used   int
	free   chan []byte
	full   chan []byte
	done   chan struct{}

	written int64 // what follows is the writing goroutine's until done
	sums    Sums
	failed  atomic.Pointer[error]
}

func rankFileName(rank int) string { return fmt.Sprintf("rank-%05d.safetensors", rank) }

// newRankFile creates the file and queues its header.
func newRankFile(v *Save, rank int, pieces []Piece) (_ *rankFile, err error) {
	head, err := v.header(rank, pieces)
	if err != nil {
		return nil, err
	}
	f := &rankFile{name: rankFileName(rank), pieces: pieces, free: make(chan []byte, chunks), full: make(chan []byte, chunks),
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
	f.chunk = <-f.free
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
		f.used, p = f.used+n, p[n:]
	}
}

// room is what is left of the chunk, or a new one.
func (f *rankFile) room() []byte {
	if f.used == len(f.chunk) {
		f.full <- f.chunk
		f.chunk, f.used = <-f.free, 0
	}
	return f.chunk[f.used:]
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
		f.used, lo = f.used+4*n, lo+n
		if err := f.failed.Load(); err != nil {
			return *err
		}
	}
	return nil
}

// drain sums and writes chunks until there are no more. After an error it throws them away.
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
	for at := 0; at < len(p); at += blockBytes {
		f.sums = append(f.sums, sum(p[at:min(at+blockBytes, len(p))]))
	}
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
	if f.used > 0 && err == nil {
		f.full <- f.chunk[:f.used]
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
	return Entry{Name: f.name, Bytes: f.written, Block: blockBytes, Sums: f.sums}, nil
}
