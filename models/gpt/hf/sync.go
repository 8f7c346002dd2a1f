package hf

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"zeroshard/internal/disk"
)

// syncTree brings everything under dir, and dir itself, to the disk.
func syncTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return disk.SyncDir(path)
		case !d.Type().IsRegular():
			return nil
		}
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		return errors.Join(f.Sync(), f.Close())
	})
}

// settle renames a folder to dir, which is an empty folder or nothing. It refuses what somebody has made of dir in the meantime.
func settle(folder, dir string) error {
	// os.Rename refuses every folder that bears the name; POSIX lets an empty one be replaced.
	refused := syscall.Rename(folder, dir)
	if refused == nil {
		return nil
	}
	was, err := os.Lstat(dir)
	if err != nil || !was.IsDir() {
		return &os.LinkError{Op: "rename", Old: folder, New: dir, Err: refused}
	}
	if err := os.Remove(dir); err != nil { // not if it is full
		return err
	}
	if err := os.Rename(folder, dir); err != nil {
		return errors.Join(err, os.Mkdir(dir, was.Mode().Perm()))
	}
	return nil
}
