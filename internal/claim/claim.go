package claim

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ErrTaken is what another process holds.
var ErrTaken = errors.New("claim: another process has it")

// Folder is a folder that nobody else writes to.
type Folder struct {
	Path string
	held *os.File
}

// Beside makes a folder .NAME.tmp-N in path's own folder, where NAME is path's last element: what is made in it can be renamed to path. It
// removes those that killed processes left. The caller removes or renames it, and then closes it.
func Beside(path string) (*Folder, error) {
	path = filepath.Clean(path)
	dir, prefix := filepath.Dir(path), "."+filepath.Base(path)+".tmp-"
	sweep(dir, prefix)
	for n := 1; ; n++ {
		f := &Folder{Path: filepath.Join(dir, fmt.Sprint(prefix, n))}
		err := os.Mkdir(f.Path, 0o777)
		if err == nil {
			err = f.take()
		}
		switch {
		case err == nil:
			return f, nil
		case errors.Is(err, ErrTaken), errors.Is(err, fs.ErrExist), errors.Is(err, fs.ErrNotExist) && isFolder(dir): // another's sweep came in between
			continue
		}
		return nil, err
	}
}

func isFolder(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.IsDir()
}

// take holds the folder, which is new. A sweep may have held it for a moment, and removed it.
func (f *Folder) take() (err error) {
	if f.held, err = os.Open(f.Path); err != nil {
		return err
	}
	err = Take(f.held)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	if err == nil {
		err = f.stands()
	}
	if err != nil {
		return errors.Join(err, f.held.Close())
	}
	return nil
}

// stands is an error that wraps fs.ErrNotExist if the folder is no longer at its path.
func (f *Folder) stands() error {
	is, err := os.Stat(f.Path)
	if err != nil {
		return err
	}
	was, err := f.held.Stat()
	if err == nil && !os.SameFile(is, was) {
		err = &fs.PathError{Op: "hold", Path: f.Path, Err: fs.ErrNotExist}
	}
	return err
}

// Close lets go of the folder.
func (f *Folder) Close() error { return f.held.Close() }

// sweep removes the folders in dir of which nobody has taken hold. What it cannot judge or remove stays.
func sweep(dir, prefix string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // Mkdir says why
	}
	for _, e := range entries {
		number, ok := strings.CutPrefix(e.Name(), prefix)
		if !ok || !e.IsDir() || number == "" || strings.Trim(number, "0123456789") != "" {
			continue
		}
		path := filepath.Join(dir, e.Name())
		held, err := os.Open(path)
		if err != nil {
			continue
		}
		if Take(held) == nil {
			_ = os.RemoveAll(path)
		}
		_ = held.Close()
	}
}
