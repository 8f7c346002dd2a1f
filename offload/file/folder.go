package file

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// A folder belongs to one rank of one run. It holds the data files and an empty one, lockName, on which its owner holds a lock for as long as it
// lives: the operating system releases it when the process ends, however that happens. So whoever gets the lock of a folder that is not
// its own knows that the owner is gone, and removes the folder. No process id is stored: those are used again, and other machines
// may see the same disk.
//
// A folder is born in three steps (make, create the lock's file, lock it), and a sweep may come in between. The sweep then finds
// a folder without a lock and removes it; its owner notices at its next step, or by the check after the last, and takes another.
const (
	folderPrefix = "zeroshard-tier-"
	lockName     = "lock"
	dataSuffix   = ".tier"
)

type folder struct {
	path string
	lock *os.File
}

var errSwept = errors.New("offload: folders are removed as fast as they are made")

// newFolder makes a folder in dir. Errors wrap *fs.PathError.
func newFolder(dir string, rank int) (*folder, error) {
	if info, err := os.Stat(dir); err != nil {
		return nil, err
	} else if !info.IsDir() {
		return nil, &fs.PathError{Op: "open folder", Path: dir, Err: errors.New("is a file")}
	}
	for range 100 {
		path, err := os.MkdirTemp(dir, fmt.Sprintf("%srank-%04d-*", folderPrefix, rank))
		if err != nil {
			return nil, err
		}
		lock, err := claim(filepath.Join(path, lockName))
		if err == nil {
			return &folder{path, lock}, nil
		}
		if !errors.Is(err, errBusy) && !errors.Is(err, fs.ErrNotExist) {
			return nil, errors.Join(err, os.Remove(path))
		}
	}
	return nil, &fs.PathError{Op: "make a folder in", Path: dir, Err: errSwept}
}

// claim creates and locks the file at path. errBusy or fs.ErrNotExist: a sweep was faster.
func claim(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if err = lockFile(f); errors.Is(err, errors.ErrUnsupported) {
		return f, nil // and no sweep can lock it either: left-overs stay
	}
	if err == nil {
		err = sameFile(f, path)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// sameFile is an error that wraps fs.ErrNotExist if path no longer is f.
func sameFile(f *os.File, path string) error {
	is, err := os.Stat(path)
	if err != nil {
		return err
	}
	was, err := f.Stat()
	if err != nil {
		return err
	}
	if !os.SameFile(is, was) {
		return &fs.PathError{Op: "lock", Path: path, Err: fs.ErrNotExist}
	}
	return nil
}

// remove deletes the data files, then the lock's, then the folder, and says how many data files there were. Anything else in it stays, and
// the folder with it.
func (f *folder) remove() (data int, err error) {
	entries, err := os.ReadDir(f.path)
	errs := []error{err}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), dataSuffix) {
			data++
			errs = append(errs, os.Remove(filepath.Join(f.path, e.Name())))
		}
	}
	errs = append(errs, os.Remove(filepath.Join(f.path, lockName)))
	if err := os.Remove(f.path); !errors.Is(err, fs.ErrNotExist) { // a sweep takes a folder that is empty
		errs = append(errs, err)
	}
	return data, errors.Join(append(errs, f.lock.Close())...)
}

// sweep removes the folders in dir whose owners are gone and returns the paths of those with data. It leaves what it cannot judge or
// remove.
func sweep(dir string) (removed []string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // newFolder says why
	}
	for _, e := range entries {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), folderPrefix) {
			continue
		}
		path := filepath.Join(dir, e.Name())
		if removeStale(path) {
			removed = append(removed, path)
		}
	}
	return removed
}

// removeStale reports whether it removed data. A folder without a lock is one that begins or ends: it is removed if it is empty.
func removeStale(path string) bool {
	lock, err := os.OpenFile(filepath.Join(path, lockName), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		_ = os.Remove(path)
		return false
	}
	if err != nil {
		return false
	}
	if lockFile(lock) != nil {
		_ = lock.Close()
		return false
	}
	data, err := (&folder{path, lock}).remove()
	return err == nil && data > 0
}
