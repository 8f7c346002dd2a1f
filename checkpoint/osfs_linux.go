package checkpoint

import (
	"errors"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"zeroshard/internal/pages"
)

// Create makes a file, for direct I/O where the file system has it.
func (OS) Create(path string) (File, error) {
	const flags = os.O_CREATE | os.O_EXCL | os.O_WRONLY
	f, err := os.OpenFile(path, flags|unix.O_DIRECT, 0o644)
	if errors.Is(err, unix.EINVAL) { // this file system has none, and may have made the file before it said so
		_ = os.Remove(path)
		f, err = os.OpenFile(path, flags, 0o644)
		if err != nil {
			return nil, err
		}
		return f, nil
	}
	if err != nil {
		return nil, err
	}
	return &directFile{File: f, direct: true}, nil
}

// directFile writes past the page cache as long as what it is given allows it: whole pages from the start of a page. From the
// first write that does not, which is a file's end, it writes as everybody does.
type directFile struct {
	*os.File
	direct bool
}

func (f *directFile) Write(p []byte) (int, error) {
	if f.direct && (len(p)%pages.Alignment != 0 || uintptr(unsafe.Pointer(unsafe.SliceData(p)))%pages.Alignment != 0) {
		if err := f.buffered(); err != nil {
			return 0, err
		}
	}
	n, err := f.File.Write(p)
	if f.direct && n == 0 && errors.Is(err, unix.EINVAL) { // the file system took the flag, but not the write
		if err = f.buffered(); err == nil {
			n, err = f.File.Write(p)
		}
	}
	return n, err
}

// buffered leaves direct I/O.
func (f *directFile) buffered() error {
	f.direct = false
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		flags, err := unix.FcntlInt(fd, unix.F_GETFL, 0)
		if err == nil {
			_, err = unix.FcntlInt(fd, unix.F_SETFL, flags&^unix.O_DIRECT)
		}
		failed = err
	})
	return errors.Join(err, failed)
}

// directReader reads whole pages past the page cache where the file system lets it, and everything else as everybody does. What is in the
// cache already comes from there either way.
type directReader struct {
	osReader
	direct *os.File // nil where there is none
}

// newReader opens the file a second time, for direct I/O.
func newReader(f *os.File, size int64) Reader {
	r := &directReader{osReader: osReader{f, size}}
	if size >= maxBlock {
		if d, err := os.OpenFile(f.Name(), os.O_RDONLY|unix.O_DIRECT, 0); err == nil {
			r.direct = d
		}
	}
	return r
}

func (r *directReader) ReadAt(p []byte, off int64) (int, error) {
	if r.direct != nil && len(p) > 0 && len(p)%pages.Alignment == 0 && off%pages.Alignment == 0 && uintptr(unsafe.Pointer(unsafe.SliceData(p)))%pages.Alignment == 0 {
		if n, err := r.direct.ReadAt(p, off); n == len(p) || !errors.Is(err, unix.EINVAL) {
			return n, err
		}
	}
	return r.osReader.ReadAt(p, off)
}

func (r *directReader) Close() error {
	err := r.osReader.Close()
	if r.direct != nil {
		err = errors.Join(err, r.direct.Close())
	}
	return err
}
