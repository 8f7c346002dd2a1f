package device

import (
	"errors"
	"fmt"
)

// Errors of this package. All texts start with "device: ".
var (
	ErrClosed   = errors.New("device: closed")
	ErrMemory   = errors.New("device: out of memory")
	ErrArgument = errors.New("device: bad argument") // a bug of the caller
)

// PanicError is a panic of a stream's task, turned into the stream's error.
type PanicError struct {
	Label string // of the task
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("device: panic in %q: %v", e.Label, e.Value) }

// Unwrap returns the panic's value where that is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}
