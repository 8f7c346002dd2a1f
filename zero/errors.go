package zero

import (
	"errors"
	"fmt"

	"zeroshard/offload"
)

// Errors of this package. All texts start with "zero: ".
var (
	ErrStrategy  = errors.New("zero: strategy")
	ErrOptions   = errors.New("zero: options")
	ErrPlan      = errors.New("zero: plan is not sound")
	ErrMismatch  = errors.New("zero: ranks have different plans")
	ErrBatch     = errors.New("zero: batch")
	ErrParameter = errors.New("zero: no such parameter")
	ErrClosed    = errors.New("zero: engine is closed")
)

// OpError is the failure of one operation on one rank.
type OpError struct {
	Rank int
	Step int
	Line int    // index of the op in its plan
	Op   string // the plan's line
	Err  error
}

func (e *OpError) Error() string {
	cause := fmt.Sprint(e.Err)
	if call, ok := e.Err.(*offload.CallError); ok && call.Rank == e.Rank {
		cause = call.OnRank()
	}
	return fmt.Sprintf("zero: rank %d, step %d, plan line %s: %s", e.Rank, e.Step, e.Op, cause)
}

func (e *OpError) Unwrap() error { return e.Err }
