package cpu

import "errors"

// ErrPath is an instruction set that this machine does not have.
var ErrPath = errors.New("cpu: no such instruction set")
