package prepare

import (
	"errors"
	"fmt"
)

// Errors of this package. All texts start with "prepare: ". Errors of the operating system are wrapped as they are.
var (
	// ErrOptions is options that cannot be used, or not with these inputs.
	ErrOptions = errors.New("prepare: bad options")
	// ErrExists is a file that would be overwritten.
	ErrExists = errors.New("prepare: the folder holds files of that name")
	// ErrInput is what every [InputError] wraps.
	ErrInput = errors.New("prepare: unusable input")
	// ErrEmpty is a part without a token.
	ErrEmpty = errors.New("prepare: nothing to write")
	// ErrID is a token id that the vocabulary, or the file, does not have room for.
	ErrID = errors.New("prepare: id out of range")
)

// InputError is a fault in an input.
type InputError struct {
	Path   string // "-" is the standard input
	Line   int    // of a JSONL file, from 1; 0: Offset says where
	Offset int64  // byte of a text, −1 where the fault is at none
	Reason string
}

func (e *InputError) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("prepare: %s: line %d: %s", e.Path, e.Line, e.Reason)
	}
	if e.Offset >= 0 {
		return fmt.Sprintf("prepare: %s: byte %d: %s", e.Path, e.Offset, e.Reason)
	}
	return fmt.Sprintf("prepare: %s: %s", e.Path, e.Reason)
}

// Unwrap returns ErrInput.
func (e *InputError) Unwrap() error { return ErrInput }

func optionf(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrOptions, fmt.Sprintf(format, args...))
}
