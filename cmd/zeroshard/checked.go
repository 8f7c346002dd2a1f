package main

import (
	"fmt"
	"io"
)

// checked is the standard output of a command. Who writes results need not look at each write: the first that fails is kept, Execute tells
// it, and nothing is written after it.
type checked struct {
	w   io.Writer
	err error
}

// outputError is a result that could not be written.
type outputError struct{ error }

func (e *outputError) Unwrap() error { return e.error }

func (c *checked) Write(p []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	n, err := c.w.Write(p)
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	if err != nil {
		c.err = &outputError{fmt.Errorf("standard output: %w", err)}
	}
	return n, c.err
}
