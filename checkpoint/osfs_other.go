//go:build !linux

package checkpoint

import (
	"errors"
	"io/fs"
	"os"
)

// Create makes a file.
func (OS) Create(path string) (File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// syncDir flushes a folder. Systems that cannot open a folder for that flush its names with its files.
func syncDir(f *os.File) error {
	err := f.Sync()
	if errors.Is(err, fs.ErrInvalid) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	return err
}

func newReader(f *os.File, size int64) Reader { return &osReader{f, size} }
