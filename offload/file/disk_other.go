//go:build !linux

package file

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// systemDisk is a file of an operating system on which this package knows no direct I/O, no way to take room and none to drop pages.
type systemDisk struct{ f *os.File }

// openDisk creates the file at path.
func openDisk(path string, d Direct) (disk, error) {
	if d == Always {
		return nil, &fs.PathError{Op: "direct I/O on", Path: path, Err: errors.ErrUnsupported}
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	return &systemDisk{f}, nil
}

func (x *systemDisk) Alignment() int                           { return 0 }
func (x *systemDisk) ReadAt(p []byte, off int64) (int, error)  { return x.f.ReadAt(p, off) }
func (x *systemDisk) WriteAt(p []byte, off int64) (int, error) { return x.f.WriteAt(p, off) }
func (x *systemDisk) Forget(int64, int64, bool) error          { return nil }
func (x *systemDisk) Close() error                             { return x.f.Close() }

// Reserve writes zeros: the only way to take room everywhere.
func (x *systemDisk) Reserve(bytes int64) error {
	zeros := make([]byte, min(bytes, 1<<20))
	for off := int64(0); off < bytes; off += int64(len(zeros)) {
		if err := writeAll(x, zeros[:min(int64(len(zeros)), bytes-off)], off); err != nil {
			return err
		}
	}
	return nil
}

func freeBytes(string) int64 { return -1 }

func outOfSpace(err error) bool { return errors.Is(err, syscall.ENOSPC) }
