package safetensors

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// File is an open safetensors file. Reads may come from several goroutines at a time.
type File struct {
	*Header
	name  string
	r     io.ReaderAt
	mem   []byte // all of the file, where it is mapped
	close func() error
	index map[string]int
	raw   sync.Pool // *[block]byte
}

// block is how many bytes are converted at a time.
const block = 1 << 16

// Open opens a file and reads its header. Errors: those of the operating system; *FormatError (wraps ErrCorrupt).
func Open(path string) (*File, error) {
	osf, size, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	f, err := NewReader(osf, size, path)
	if err != nil {
		osf.Close()
		return nil, err
	}
	f.close = osf.Close
	return f, nil
}

// openRegular opens what has a size and can be read at any place. It looks before it opens: to open a pipe waits for a writer.
func openRegular(path string) (*os.File, int64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, 0, fmt.Errorf("safetensors: %w", err)
	}
	if !info.Mode().IsRegular() {
		err := &os.PathError{Op: "read", Path: path, Err: errors.New("not a regular file")}
		return nil, 0, fmt.Errorf("safetensors: %w", err)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, fmt.Errorf("safetensors: %w", err)
	}
	if info, err = f.Stat(); err != nil {
		f.Close()
		return nil, 0, fmt.Errorf("safetensors: %w", err)
	}
	return f, info.Size(), nil
}

// NewReader reads the header of a file of size bytes. The name is for errors. Close does not close r.
func NewReader(r io.ReaderAt, size int64, name string) (*File, error) {
	f := &File{name: name, r: r}
	f.raw.New = func() any { return new([block]byte) }
	head := make([]byte, max(min(size, lead), 0))
	if err := f.read(head, 0); err != nil {
		return nil, err
	}
	n, err := headerLen(head, size)
	if err != nil {
		return nil, f.named(err)
	}
	head = append(head, make([]byte, n)...)
	if err := f.read(head[lead:], lead); err != nil {
		return nil, err
	}
	h, err := Parse(head, size)
	if err != nil {
		return nil, f.named(err)
	}
	f.Header, f.index = h, make(map[string]int, len(h.Tensors))
	for i, t := range h.Tensors {
		f.index[t.Name] = i
	}
	return f, nil
}

// named puts the file's name into an error.
func (f *File) named(err error) error {
	if e := (*FormatError)(nil); errors.As(err, &e) {
		e.File = f.name
	}
	return err
}

// Name is the path or name that the file was opened by.
func (f *File) Name() string { return f.name }

// Lookup finds a tensor.
func (f *File) Lookup(name string) (Tensor, bool) {
	i, ok := f.index[name]
	if !ok {
		return Tensor{}, false
	}
	return f.Tensors[i], true
}

// ReadAt fills p with bytes off, off+1, … of a tensor. ErrRange: they are not all the tensor's. *FormatError: the file became shorter.
func (f *File) ReadAt(t Tensor, p []byte, off int64) error {
	if err := f.inside(t, off, int64(len(p))); err != nil {
		return err
	}
	return f.read(p, f.Data+t.Lo+off)
}

// Bytes is a view of a tensor's bytes in a mapped file, false where the file is not mapped. Nobody may write to it, nor use it after
// Close. ErrRange is a tensor outside the file.
func (f *File) Bytes(t Tensor) (view []byte, mapped bool, err error) {
	if f.mem == nil {
		return nil, false, nil
	}
	if err := f.inside(t, 0, t.Hi-t.Lo); err != nil {
		return nil, true, err
	}
	lo, hi := f.Data+t.Lo, f.Data+t.Hi
	return f.mem[lo:hi:hi], true, nil
}

// Float32s fills dst with elements lo, lo+1, … of a tensor, widened: F32, F16, BF16, and F64 where it is exact (else ErrConvert).
func (f *File) Float32s(t Tensor, lo int64, dst []float32) error {
	size := int64(t.DType.Size())
	if lo < 0 || size == 0 || lo > t.Len() || int64(len(dst)) > t.Len()-lo {
		return fmt.Errorf("%w: %s: tensor %q: elements [%d, %d) of %v", ErrRange, f.name, t.Name, lo, lo+int64(len(dst)), t.Shape)
	}
	b := f.raw.Get().(*[block]byte)
	defer f.raw.Put(b)
	for len(dst) > 0 {
		n := min(len(dst), block/int(size))
		raw := b[:n*int(size)]
		if err := f.ReadAt(t, raw, lo*size); err != nil {
			return err
		}
		if err := widen(dst[:n], raw, t.DType); err != nil {
			return fmt.Errorf("%w (%s: tensor %q, from element %d on)", err, f.name, t.Name, lo)
		}
		lo, dst = lo+int64(n), dst[n:]
	}
	return nil
}

// Close closes or unmaps the file.
func (f *File) Close() error {
	if f.close == nil {
		return nil
	}
	closing := f.close
	f.close, f.mem = nil, nil
	if err := closing(); err != nil {
		return fmt.Errorf("safetensors: %w", err)
	}
	return nil
}

// inside says whether bytes [off, off+n) are the tensor's, and the tensor this file's.
func (f *File) inside(t Tensor, off, n int64) error {
	end := int64(0)
	if last := len(f.Tensors) - 1; last >= 0 {
		end = f.Tensors[last].Hi
	}
	if t.Lo < 0 || t.Hi < t.Lo || t.Hi > end {
		return fmt.Errorf("%w: %s: tensor %q lies at [%d, %d), the data has %d bytes", ErrRange, f.name, t.Name, t.Lo, t.Hi, end)
	}
	if size := t.Hi - t.Lo; off < 0 || off > size || n > size-off {
		return fmt.Errorf("%w: %s: tensor %q: bytes [%d, %d) of %d", ErrRange, f.name, t.Name, off, off+n, size)
	}
	return nil
}

// read reads all of p.
func (f *File) read(p []byte, off int64) error {
	if f.mem != nil {
		copy(p, f.mem[off:])
		return nil
	}
	n, err := f.r.ReadAt(p, off)
	switch {
	case n == len(p):
		return nil
	case errors.Is(err, io.EOF):
		return f.named(fault("", off+int64(n), "the file ended early: it became shorter while it was read"))
	}
	return fmt.Errorf("safetensors: %s: %w", f.name, err)
}
