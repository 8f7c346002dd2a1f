package collectives

import (
	"errors"
	"fmt"
	"strings"
)

// Errors of this package. All texts start with "collectives: ".
var (
	ErrArgument = errors.New("collectives: bad argument") // a bug of the caller
	ErrMismatch = errors.New("collectives: ranks disagree")
	ErrClosed   = errors.New("collectives: closed")
)

// AbortError is what every call returns after one rank gave up: by Abort, by a cancelled context, or by Close.
type AbortError struct {
	Rank  int // who gave up
	Cause error
}

func (e *AbortError) Error() string {
	return fmt.Sprintf("collectives: aborted by rank %d: %v", e.Rank, e.Cause)
}

// Unwrap returns the cause.
func (e *AbortError) Unwrap() error { return e.Cause }

// MismatchError says which ranks made which call where all had to make the same one. It wraps ErrMismatch.
type MismatchError struct {
	Seq   uint64 // number of the call in the group, from 1
	Calls []Call // by rank
}

// Error names each different call once, with its ranks, in the order of the first rank that made it.
func (e *MismatchError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v at call %d: ", ErrMismatch, e.Seq)
	told := map[Call]bool{}
	for rank, c := range e.Calls {
		if told[c] {
			continue
		}
		if len(told) > 0 {
			b.WriteString(", ")
		}
		told[c] = true
		fmt.Fprintf(&b, "%s %v", ranksOf(e.Calls, c, rank), c)
	}
	return b.String()
}

// Unwrap returns ErrMismatch.
func (e *MismatchError) Unwrap() error { return ErrMismatch }

// ranksOf lists who made call c, first among them: "rank 3", "ranks 0-2, 5".
func ranksOf(calls []Call, c Call, first int) string {
	var spans []string
	count := 0
	for r := first; r < len(calls); r++ {
		if calls[r] != c {
			continue
		}
		lo := r
		for r+1 < len(calls) && calls[r+1] == c {
			r++
		}
		count += r - lo + 1
		if lo == r {
			spans = append(spans, fmt.Sprint(lo))
		} else {
			spans = append(spans, fmt.Sprintf("%d-%d", lo, r))
		}
	}
	if count == 1 {
		return "rank " + spans[0]
	}
	return "ranks " + strings.Join(spans, ", ")
}
