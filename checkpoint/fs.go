package checkpoint

import "io"

// FS is what a store needs of a file system. Paths are its own. OS is the machine's; crashfs has one that fails and stops as it is told.
//
// What is written counts as safe after Sync of its file, and a name (of a new, renamed or removed file) after SyncDir of its folder.
type FS interface {
	// MkdirAll makes a folder and those above it that are missing, and makes their names safe.
	MkdirAll(dir string) error
	// Create makes a file that does not exist yet.
	Create(path string) (File, error)
	// Open opens a file for reading.
	Open(path string) (Reader, error)
	// Rename replaces to, if it is a file; a folder must not be there.
	Rename(from, to string) error
	// RemoveAll removes a file or a folder with all in it; what does not exist is no error.
	RemoveAll(path string) error
	// SyncDir makes the names in a folder safe.
	SyncDir(dir string) error
	// List returns the names in a folder, in byte order, folders with a slash at the end. The error of a folder that does not exist
	// wraps fs.ErrNotExist.
	List(dir string) ([]string, error)
}

// File is a file that is being written, from start to end.
type File interface {
	io.Writer
	Sync() error
	Close() error
}

// Reader is a file that is being read, by several goroutines at a time.
type Reader interface {
	io.ReaderAt
	io.Closer
	Size() int64
}
