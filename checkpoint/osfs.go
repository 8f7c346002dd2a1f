package checkpoint

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"zeroshard/internal/disk"
)

// OS is the machine's file system. Where it can, it writes past the page cache (direct I/O): a checkpoint is large, is not read soon,
// and must be on the disk anyway.
type OS struct{}

var _ FS = OS{}

// MkdirAll makes dir and flushes the folders in which names are new.
func (OS) MkdirAll(dir string) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	parent := filepath.Dir(dir)
	if parent != dir {
		if err := (OS{}).MkdirAll(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return OS{}.SyncDir(parent)
}

// Open opens a file for reading.
func (OS) Open(path string) (Reader, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: path, Err: errors.New("not a regular file")}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return newReader(f, info.Size()), nil
}

type osReader struct {
	*os.File
	size int64
}

func (r *osReader) Size() int64 { return r.size }

// Rename renames.
func (OS) Rename(from, to string) error { return os.Rename(from, to) }

// RemoveAll removes.
func (OS) RemoveAll(path string) error { return os.RemoveAll(path) }

// SyncDir flushes the names in dir.
func (OS) SyncDir(dir string) error { return disk.SyncDir(dir) }

// isDir follows links.
func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// List lists dir. A link to a folder counts as a folder.
func (OS) List(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
		if e.IsDir() || e.Type()&fs.ModeSymlink != 0 && isDir(filepath.Join(dir, e.Name())) {
			names[i] += "/"
		}
	}
	return names, nil
}
