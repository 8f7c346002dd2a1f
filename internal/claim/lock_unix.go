//go:build unix && !solaris && !illumos && !aix

package claim

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// Take takes a file or folder until f is closed. Errors: ErrTaken, errors.ErrUnsupported where the file system has no locks, and the operating
// system's.
func Take(f *os.File) error {
	for {
		switch err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err {
		case nil:
			return nil
		case unix.EINTR:
		case unix.EWOULDBLOCK:
			return ErrTaken
		case unix.ENOSYS, unix.ENOLCK, unix.EOPNOTSUPP, unix.EBADF: // the last where locks need a file that can be written
			return fmt.Errorf("%w: lock of %s: %w", errors.ErrUnsupported, f.Name(), err)
		default:
			return &fs.PathError{Op: "lock", Path: f.Name(), Err: err}
		}
	}
}
