//go:build unix

package train

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lock takes the folder for this process, until it is closed or the process ends, however it ends.
func lock(f *os.File) (taken bool, err error) {
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return true, nil
	}
	if errors.Is(err, unix.ENOTSUP) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.ENOLCK) { // a file system without locks
		return false, nil
	}
	return false, err
}
