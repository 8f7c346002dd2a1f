package data

import (
	"errors"
	"fmt"
)

// Errors of this package. All texts start with "data: ". Errors of the operating system are wrapped as they are.
var (
	// ErrCorrupt is what every [FileError] wraps: the file is damaged, truncated, too short, or of another vocabulary.
	ErrCorrupt = errors.New("data: corrupt file")
	// ErrMismatch is a file that is fine and settings that are fine, but not together.
	ErrMismatch = errors.New("data: files and settings do not fit together")
	// ErrNoCorpus is a default corpus that is not on this machine.
	ErrNoCorpus = errors.New("data: no default corpus")
	// ErrRange is a read outside a token sequence: a bug of the caller.
	ErrRange = errors.New("data: read outside the tokens")
)

// FileError is a fault at a place of a file.
type FileError struct {
	Path   string
	Token  int64 // index of the token at fault, -1 where the fault is none of a token
	Offset int64 // byte offset of the fault
	Reason string
}

func (e *FileError) Error() string {
	if e.Token < 0 {
		return fmt.Sprintf("data: %s: byte %d: %s", e.Path, e.Offset, e.Reason)
	}
	return fmt.Sprintf("data: %s: token %d at byte %d: %s", e.Path, e.Token, e.Offset, e.Reason)
}

// Unwrap returns ErrCorrupt.
func (e *FileError) Unwrap() error { return ErrCorrupt }

func fault(path string, offset int64, format string, args ...any) error {
	return &FileError{Path: path, Token: -1, Offset: offset, Reason: fmt.Sprintf(format, args...)}
}
