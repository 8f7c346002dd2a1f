package checkpoint

import (
	"errors"
	"fmt"
)

// Errors of this package. All texts start with "checkpoint: ". Errors of the operating system are wrapped as they are.
var (
	// ErrNone: there is no committed step, or not the one that was asked for.
	ErrNone = errors.New("checkpoint: no such step")
	// ErrCorrupt is what every CorruptError wraps.
	ErrCorrupt = errors.New("checkpoint: corrupt")
	// ErrMismatch: the checkpoint is fine, but it is of another model or optimizer.
	ErrMismatch = errors.New("checkpoint: does not fit")
	// ErrExists: the step is committed already.
	ErrExists = errors.New("checkpoint: the step exists")
	// ErrSave is what every SaveError wraps.
	ErrSave = errors.New("checkpoint: not saved")
)

// CorruptError is damage that was found: a file that is not what was written.
type CorruptError struct {
	File   string // path
	Tensor string // "state/parameter", "" where the damage is in none or in unknown ones
	Offset int64  // of the damaged block in the file, -1 where it has no place
	Reason string
}

func (e *CorruptError) Error() string {
	where := e.File
	if e.Tensor != "" {
		where += ": " + e.Tensor
	}
	if e.Offset >= 0 {
		where += fmt.Sprintf(": byte %d", e.Offset)
	}
	return fmt.Sprintf("%v: %s: %s", ErrCorrupt, where, e.Reason)
}

// Unwrap returns ErrCorrupt.
func (e *CorruptError) Unwrap() error { return ErrCorrupt }

func corrupt(file string, format string, args ...any) error {
	return &CorruptError{File: file, Offset: -1, Reason: fmt.Sprintf(format, args...)}
}

// LatestError is a step that is committed and safe, while the file latest still names another. It wraps ErrSave and Err.
type LatestError struct {
	Step int
	Err  error
}

func (e *LatestError) Error() string {
	return fmt.Sprintf("checkpoint: step %d is saved, but the file that names the newest step cannot be written: %v", e.Step, e.Err)
}

// Unwrap returns ErrSave and Err.
func (e *LatestError) Unwrap() []error { return []error{ErrSave, e.Err} }

// SaveError is a save that failed. What was committed before is untouched. It wraps ErrSave and Err.
type SaveError struct {
	Step int
	Last int // the newest committed step, -1 for none
	Err  error

	Unknown error // why Last could not be read, nil where it could
}

func (e *SaveError) Error() string {
	last := "nothing is saved yet"
	switch {
	case e.Unknown != nil:
		last = fmt.Sprintf("and which steps are saved cannot be read (%v)", e.Unknown)
	case e.Last == e.Step: // the rename is done, what makes it safe is not
		return fmt.Sprintf("checkpoint: step %d is in its place, but whether it is safe there is not known: %v", e.Step, e.Err)
	case e.Last >= 0:
		last = fmt.Sprintf("the newest saved step is %d", e.Last)
	}
	return fmt.Sprintf("checkpoint: step %d is not saved, %s: %v", e.Step, last, e.Err)
}

// Unwrap returns ErrSave and Err.
func (e *SaveError) Unwrap() []error { return []error{ErrSave, e.Err} }
