package data

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// Tokens is a sequence of token ids that can be read at any place, by several goroutines at a time.
type Tokens interface {
	// Len is the number of tokens.
	Len() int
	// Read fills dst with tokens at, at+1, …
	Read(at int, dst []int32) error
}

// File is one open token file.
type File struct {
	path  string
	f     io.ReaderAt
	close io.Closer
	vocab int
	format
	raw sync.Pool // *[block]byte: several goroutines read at a time
}

// block is how many bytes are read at a time.
const block = 1 << 16

// Open opens a token file and reads it once from end to end: every id must be under vocab. A plain text needs vocab ≥ 256.
// Errors: those of the operating system; *FileError (wraps ErrCorrupt) with the byte offset; ErrMismatch.
func Open(path string, vocab int) (*File, error) {
	// Before it is opened: to open a pipe waits for a writer, and to open a device may do anything.
	if info, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("data: %w", err)
	} else if err := regular(path, info); err != nil {
		return nil, err
	}
	osf, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	f, err := open(osf, path, vocab)
	if err != nil {
		osf.Close()
		return nil, err
	}
	f.close = osf
	return f, nil
}

func open(osf *os.File, path string, vocab int) (*File, error) {
	info, err := osf.Stat()
	if err != nil {
		return nil, fmt.Errorf("data: %w", err)
	}
	if err := regular(path, info); err != nil {
		return nil, err
	}
	return newFile(osf, path, info.Size(), vocab)
}

// regular refuses what cannot be read at any place, again and again.
func regular(path string, info os.FileInfo) error {
	what := "a device"
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		what = "a folder"
	case mode&os.ModeNamedPipe != 0:
		what = "a pipe"
	case mode&os.ModeSocket != 0:
		what = "a socket"
	}
	return fmt.Errorf("data: %w", &os.PathError{Op: "read tokens of", Path: path, Err: fmt.Errorf("%s, not a regular file", what)})
}

// newFile is Open without the operating system.
func newFile(r io.ReaderAt, path string, size int64, vocab int) (*File, error) {
	f := &File{path: path, f: r, vocab: min(vocab, 1<<31)} // ids are int32
	f.raw.New = func() any { return new([block]byte) }
	head := make([]byte, min(size, headerBytes))
	if err := f.readAt(head, 0); err != nil {
		return nil, err
	}
	var err error
	if f.format, err = parseHeader(path, size, head); err != nil {
		return nil, err
	}
	if f.Text() && vocab < 256 {
		return nil, fmt.Errorf("%w: %s is plain text, its tokens are bytes: the vocabulary must be at least 256, it is %d "+
			"(choose another model, or a .bin file of this vocabulary)", ErrMismatch, path, vocab)
	}
	if f.Text() { // every byte is an id
		return f, nil
	}
	return f, f.scan()
}

// Path is the file's path as it was opened.
func (f *File) Path() string { return f.path }

// Text says that the tokens are the bytes of a plain text.
func (f *File) Text() bool { return f.width == 1 }

// Len is the number of tokens.
func (f *File) Len() int { return int(f.tokens) }

// Close closes the file.
func (f *File) Close() error {
	if f.close == nil {
		return nil
	}
	return f.close.Close()
}

// Read fills dst with tokens at, at+1, … It checks ids again: the file may have changed since Open.
func (f *File) Read(at int, dst []int32) error {
	if at < 0 || at > f.Len()-len(dst) {
		return outside(at, len(dst), f.Len())
	}
	b := f.raw.Get().(*[block]byte)
	defer f.raw.Put(b)
	for len(dst) > 0 {
		n := min(len(dst), block/f.width)
		if err := f.read(int64(at), dst[:n], b[:n*f.width]); err != nil {
			return err
		}
		at, dst = at+n, dst[n:]
	}
	return nil
}

// read fills dst with tokens from at on, through raw, which has their size in bytes.
func (f *File) read(at int64, dst []int32, raw []byte) error {
	if err := f.readAt(raw, f.start+at*int64(f.width)); err != nil {
		return err
	}
	if i := decode(dst, raw, f.width, uint32(f.vocab)); i >= 0 {
		return &FileError{Path: f.path, Token: at + int64(i), Offset: f.start + (at+int64(i))*int64(f.width),
			Reason: fmt.Sprintf("id %d is outside the vocabulary of %d", uint32(dst[i]), f.vocab)}
	}
	return nil
}

// decode widens ids and returns the index of the first that is not under vocab, or -1.
func decode(dst []int32, raw []byte, width int, vocab uint32) int {
	switch width {
	case 1:
		for i := range dst {
			dst[i] = int32(raw[i])
		}
	case 2:
		for i := range dst {
			dst[i] = int32(binary.LittleEndian.Uint16(raw[2*i:]))
		}
	case 4:
		for i := range dst {
			dst[i] = int32(binary.LittleEndian.Uint32(raw[4*i:]))
		}
	}
	for i, id := range dst {
		if uint32(id) >= vocab { // a uint32 id over 2³¹ too
			return i
		}
	}
	return -1
}

// scan checks every id.
func (f *File) scan() error {
	b := f.raw.Get().(*[block]byte)
	defer f.raw.Put(b)
	ids := make([]int32, block/f.width)
	for at := int64(0); at < f.tokens; at += int64(len(ids)) {
		n := min(f.tokens-at, int64(len(ids)))
		if err := f.read(at, ids[:n], b[:n*int64(f.width)]); err != nil {
			return err
		}
	}
	return nil
}

// readAt reads all of raw.
func (f *File) readAt(raw []byte, off int64) error {
	n, err := f.f.ReadAt(raw, off)
	switch {
	case n == len(raw):
		return nil
	case errors.Is(err, io.EOF):
		return fault(f.path, off+int64(n), "the file ended early: it became shorter while it was read")
	}
	return fmt.Errorf("data: %w", err)
}

func outside(at, n, length int) error {
	return fmt.Errorf("%w: [%d, %d) of %d", ErrRange, at, at+n, length)
}
