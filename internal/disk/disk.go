package disk

import (
	"errors"
	"io/fs"
	"os"
	"runtime"
)

// SyncDir flushes the names in dir. Systems that cannot flush a folder flush its names with its files: there it does nothing.
func SyncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = f.Sync()
	if runtime.GOOS != "linux" && (errors.Is(err, fs.ErrInvalid) || errors.Is(err, fs.ErrPermission)) {
		err = nil
	}
	return errors.Join(err, f.Close())
}
