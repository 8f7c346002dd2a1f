package file

import (
	"io"
	"unsafe"
)

// disk is a file as this package needs it: the seam where tests put one that fails.
type disk interface {
	// ReadAt and WriteAt are one read and one write: they may be short, as the system calls are.
	io.ReaderAt
	io.WriterAt
	// Reserve makes the file bytes long and takes the room.
	Reserve(bytes int64) error
	// Forget drops [off, off+n) from the page cache. written: it was just written, and must reach the disk first.
	Forget(off, n int64, written bool) error
	// Alignment is what addresses must be multiples of; offsets and lengths then are multiples of sector. 0: I/O goes through the page
	// cache, and nothing need be aligned.
	Alignment() int
	Close() error
}

// opener creates the file at path.
type opener func(path string, d Direct) (disk, error)

// readAll fills p. A file that ends before is io.ErrUnexpectedEOF.
func readAll(d disk, p []byte, off int64) error {
	for len(p) > 0 {
		n, err := d.ReadAt(p, off)
		if n == len(p) {
			return nil
		}
		if err != nil && err != io.EOF {
			return err
		}
		if n <= 0 || err == io.EOF || !resumable(d, n) {
			return io.ErrUnexpectedEOF
		}
		p, off = p[n:], off+int64(n)
	}
	return nil
}

// writeAll writes p, in several writes where the system takes less than all.
func writeAll(d disk, p []byte, off int64) error {
	for len(p) > 0 {
		n, err := d.WriteAt(p, off)
		if err != nil {
			return err
		}
		if n <= 0 || n < len(p) && !resumable(d, n) {
			return io.ErrShortWrite
		}
		p, off = p[n:], off+int64(n)
	}
	return nil
}

// resumable reports whether the next call may begin after n bytes: direct I/O must begin at a sector.
func resumable(d disk, n int) bool { return d.Alignment() == 0 || n%sector == 0 }

// movable reports whether d can read to or write from p without staging.
func movable(d disk, p []byte) bool {
	align := uintptr(d.Alignment())
	return align == 0 || len(p)%sector == 0 && uintptr(unsafe.Pointer(unsafe.SliceData(p)))%align == 0
}
