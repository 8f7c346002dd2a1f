package collectives

import (
	"context"

	"zeroshard/device"
)

// Verb is one of the two ways in which data moves.
type Verb uint8

// The verbs.
const (
	AllGather Verb = iota
	ReduceScatter
)

func (v Verb) String() string { return [...]string{"all-gather", "reduce-scatter"}[v] }

// Group is one rank's end of a group of ranks. All ranks of a group must make the same calls in the same order; a call that
// differs (verb, sizes, dtypes, fold) is an error on all ranks, not a hang.
//
// A call runs where it is made: the engine makes it inside a task of its comm stream s. It returns when dst is whole and no
// peer reads src any more.
type Group interface {
	Rank() int
	Size() int
	// AllGather: dst (Size·n) = the src (n) of every rank, by rank. src may be this rank's place in dst. Any dtype.
	// An empty dst is for a rank that needs nothing: it only gives its src.
	AllGather(ctx context.Context, s device.Stream, dst, src device.Buffer) error
	// ReduceScatter: this rank's slice of every rank's Src, folded.
	ReduceScatter(ctx context.Context, s device.Stream, r Reduction) error
	// Workspace is bytes of staging that a call with n bytes of full buffer needs (none in process). Pure.
	Workspace(v Verb, n int64) int64
	// Abort makes every later call on every rank fail with an *AbortError that holds cause, and every pending one that some rank
	// has not made yet. (A call that all ranks have made ends the same way on all of them.) The first cause stays. A ctx that
	// ends aborts with its cause.
	Abort(cause error)
	// Close ends this rank's end. Calls of peers that this rank has not made fail, those of this rank with ErrClosed.
	Close() error
}

// Reduction is one reduce-scatter with carry. Src has Size·n elements, slice r belongs to rank r; it is empty on a rank that has
// no part in this window (Fold says which). In and Out are n-element slots: In holds the carry of earlier windows, Out
// gets the new one. Out[i] may be In[i], and the only Out may be this rank's own slice of Src.
type Reduction struct {
	Out, In []device.Buffer
	Src     device.Buffer
	Fold    *Fold
}

// Folder adds parts; kernels.Vector is one. dst = a + b, dst may be a or b.
type Folder interface {
	Add(s device.Stream, dst, a, b device.Buffer)
}
