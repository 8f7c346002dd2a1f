//go:build unix && !solaris && !illumos && !aix

package file

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

var errBusy = errors.New("offload: locked by another")

// lockFile locks f until it is closed. It does not wait: errBusy. errors.ErrUnsupported: the file system has no locks.
func lockFile(f *os.File) error {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch err {
		case nil:
			return nil
		case unix.EINTR:
			continue
		case unix.EWOULDBLOCK:
			return errBusy
		case unix.ENOSYS, unix.ENOLCK, unix.EOPNOTSUPP:
			return fmt.Errorf("offload: lock of %s: %w: %w", f.Name(), errors.ErrUnsupported, err)
		}
		return &fs.PathError{Op: "lock", Path: f.Name(), Err: err}
	}
}
