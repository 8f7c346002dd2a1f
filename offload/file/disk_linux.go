package file

import (
	"errors"
	"io"
	"io/fs"

	"golang.org/x/sys/unix"

	"zeroshard/internal/pages"
)

// systemDisk is a file of the operating system. It keeps the descriptor itself: os.File hides short reads and writes, which direct I/O
// must see.
type systemDisk struct {
	fd    int
	path  string
	align int
}

// openDisk creates the file at path with direct I/O if d and the file system allow it.
func openDisk(path string, d Direct) (disk, error) {
	const flags = unix.O_RDWR | unix.O_CREAT | unix.O_CLOEXEC
	if d != Never {
		x, err := tryDirect(path, flags|unix.O_DIRECT)
		if err == nil || !errors.Is(err, unix.EINVAL) || d == Always {
			return x, err
		}
	}
	fd, err := open(path, flags)
	if err != nil {
		return nil, err
	}
	// Without read-ahead: what is read next is known better here, and what is read ahead would stay in the cache.
	_ = unix.Fadvise(fd, 0, 0, unix.FADV_RANDOM)
	return &systemDisk{fd: fd, path: path}, nil
}

func open(path string, flags int) (int, error) {
	for {
		fd, err := unix.Open(path, flags, 0o600)
		if err == nil {
			return fd, nil
		}
		if err != unix.EINTR {
			return -1, &fs.PathError{Op: "open", Path: path, Err: err}
		}
	}
}

// tryDirect opens for direct I/O and makes one write, since some file systems refuse only that. Its error wraps EINVAL where the file
// system does not do it as this package needs it.
func tryDirect(path string, flags int) (_ disk, err error) {
	fd, err := open(path, flags)
	if err != nil {
		return nil, err
	}
	x := &systemDisk{fd: fd, path: path, align: sector}
	defer func() {
		if err != nil {
			err = errors.Join(err, x.Close())
		}
	}()
	var s unix.Statx_t
	if unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_DIOALIGN, &s) == nil && s.Mask&unix.STATX_DIOALIGN != 0 {
		if s.Dio_offset_align == 0 || sector%s.Dio_offset_align != 0 || s.Dio_mem_align > pages.Alignment {
			return nil, x.fault("direct I/O on", unix.EINVAL)
		}
		x.align = int(max(s.Dio_mem_align, 1))
	}
	zeros, err := pages.Map(sector)
	if err != nil {
		return nil, x.fault("direct I/O on", err)
	}
	defer pages.Unmap(zeros)
	if err := writeAll(x, zeros[:sector], 0); err != nil {
		return nil, err
	}
	return x, nil
}

func (x *systemDisk) fault(op string, err error) error {
	return &fs.PathError{Op: op, Path: x.path, Err: err}
}

func (x *systemDisk) Alignment() int { return x.align }

func (x *systemDisk) ReadAt(p []byte, off int64) (int, error) {
	for {
		n, err := unix.Pread(x.fd, p, off)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return 0, x.fault("read", err)
		case n == 0 && len(p) > 0:
			return 0, io.EOF
		}
		return n, nil
	}
}

func (x *systemDisk) WriteAt(p []byte, off int64) (int, error) {
	for {
		n, err := unix.Pwrite(x.fd, p, off)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return 0, x.fault("write", err)
		}
		return n, nil
	}
}

// Reserve takes blocks from the file system. Where that cannot, the room is only checked: it is there now.
func (x *systemDisk) Reserve(bytes int64) error {
	if bytes == 0 {
		return nil
	}
	for {
		err := unix.Fallocate(x.fd, 0, 0, bytes)
		switch {
		case err == nil:
			return nil
		case err == unix.EINTR:
			continue
		case err != unix.EOPNOTSUPP && err != unix.ENOSYS:
			return x.fault("fallocate", err)
		}
		if free := freeBytes(x.path); free >= 0 && free < bytes {
			return x.fault("truncate", unix.ENOSPC)
		}
		if err := unix.Ftruncate(x.fd, bytes); err != nil {
			return x.fault("truncate", err)
		}
		return nil
	}
}

func (x *systemDisk) Forget(off, n int64, written bool) error {
	if x.align > 0 {
		return nil
	}
	if written { // pages that are not yet on disk cannot be dropped
		const flags = unix.SYNC_FILE_RANGE_WAIT_BEFORE | unix.SYNC_FILE_RANGE_WRITE | unix.SYNC_FILE_RANGE_WAIT_AFTER
		err := unix.SyncFileRange(x.fd, off, n, flags)
		if err != nil && err != unix.ENOSYS && err != unix.ESPIPE && err != unix.EINVAL {
			return x.fault("write back", err)
		}
	}
	_ = unix.Fadvise(x.fd, off, n, unix.FADV_DONTNEED) // advice: not to follow it is no fault
	return nil
}

func (x *systemDisk) Close() error {
	if err := unix.Close(x.fd); err != nil {
		return x.fault("close", err)
	}
	return nil
}

// freeBytes is what a user may still write to the file system of path, -1 if it does not say.
func freeBytes(path string) int64 {
	var s unix.Statfs_t
	if unix.Statfs(path, &s) != nil {
		return -1
	}
	return int64(s.Bavail) * int64(s.Bsize)
}

// outOfSpace reports whether err is a full disk or a full quota.
func outOfSpace(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
}
