package shard

import (
	"errors"
	"fmt"
)

// Errors of this package. All texts start with "shard: ".
var (
	ErrLayout  = errors.New("shard: bad layout")
	ErrMesh    = errors.New("shard: bad mesh")
	ErrWorld   = errors.New("shard: world does not fit the batch")
	ErrWindows = errors.New("shard: bad window")
)

// LayoutError is one fault of a list of FlatSpecs. It is an ErrLayout.
type LayoutError struct {
	Spec, Param string // Param is empty where the spec itself is at fault
	Problem     string
}

func (e *LayoutError) Error() string {
	if e.Param == "" {
		return fmt.Sprintf("shard: flat %q: %s", e.Spec, e.Problem)
	}
	return fmt.Sprintf("shard: flat %q, parameter %q: %s", e.Spec, e.Param, e.Problem)
}

// Unwrap returns ErrLayout.
func (e *LayoutError) Unwrap() error { return ErrLayout }

// WorldError says that a number of ranks or replicas cannot train a number of leaves. It is an ErrWorld.
type WorldError struct {
	Leaves, Ranks int
	Replicas      bool // Ranks counts replicas
	Nearest       []int
}

func (e *WorldError) Error() string {
	if e.Replicas {
		return fmt.Sprintf("shard: %d leaves do not split over %d replicas into equal powers of two; numbers of replicas that do: %v",
			e.Leaves, e.Ranks, e.Nearest)
	}
	return fmt.Sprintf("shard: %d ranks for a batch of %d leaves leave ranks without work; use at most %v ranks, or at least %d leaves",
		e.Ranks, e.Leaves, e.Nearest[0], e.Ranks)
}

// Unwrap returns ErrWorld.
func (e *WorldError) Unwrap() error { return ErrWorld }
