package offload

import (
	"errors"
	"fmt"
)

// Errors of this package and of its backends. All texts start with "offload: ".
var (
	ErrArgument = errors.New("offload: bad argument") // a bug of the caller
	ErrClosed   = errors.New("offload: closed")
	ErrSpace    = errors.New("offload: no room")
	// ErrCorrupt: bytes that came back are not those that were put.
	ErrCorrupt = errors.New("offload: corrupt bytes")
	// ErrTorn: an earlier Put of these bytes failed, so neither old nor new ones can be given out. A Put that covers them heals them.
	ErrTorn = errors.New("offload: bytes of a failed put")
)

// KeyError is a call for bytes that the tier does not hold. It wraps ErrArgument.
type KeyError struct {
	Tier  string
	Rank  int
	Key   Key
	Off   int64
	Bytes int64
	Size  int64 // of the slice, -1 where nothing is reserved for Key
}

func (e *KeyError) Error() string {
	what := fmt.Sprintf("offload: %s tier: rank %d: %v: %d bytes at offset %d", e.Tier, e.Rank, e.Key, e.Bytes, e.Off)
	if e.Size < 0 {
		return what + ": no room was reserved for this flat and state"
	}
	return fmt.Sprintf("%s are not inside its %d bytes", what, e.Size)
}

// Unwrap returns ErrArgument.
func (e *KeyError) Unwrap() error { return ErrArgument }

// CallError is what went wrong in a call for a slice, and where. It wraps Err.
type CallError struct {
	Tier  string
	Rank  int
	Verb  string // "put", "get"
	Key   Key
	Path  string // of the file, "" where there is none
	Off   int64  // in the file, else in the slice
	Bytes int64  // from Off on, of the block that failed
	Err   error
}

func (e *CallError) Error() string {
	return fmt.Sprintf("offload: %s tier: rank %d: %s", e.Tier, e.Rank, e.what())
}

// OnRank is the text for whoever has named the rank already.
func (e *CallError) OnRank() string { return fmt.Sprintf("offload: %s tier: %s", e.Tier, e.what()) }

func (e *CallError) what() string {
	where := ""
	if e.Path != "" {
		where = " of " + e.Path
	}
	return fmt.Sprintf("%s of %v: %d bytes at offset %d%s: %v", e.Verb, e.Key, e.Bytes, e.Off, where, e.Err)
}

// Unwrap returns Err.
func (e *CallError) Unwrap() error { return e.Err }

// SpaceError is room that a tier could not take. It wraps ErrSpace and Err.
type SpaceError struct {
	Tier  string
	Rank  int
	Path  string // of the file, "" for memory
	Bytes int64  // asked for
	Free  int64  // as the file system says, -1 if it does not
	Total int64  // what the rank needs in all, in this tier; 0: Bytes are all
	Taken int64  // and what of it the rank has
	Err   error
}

func (e *SpaceError) Error() string {
	where := "memory"
	if e.Path != "" {
		where = e.Path
	}
	free := ""
	if e.Free >= 0 {
		free = fmt.Sprintf(", %d are free", e.Free)
	}
	if e.Total > 0 {
		free += fmt.Sprintf(", of %d that are needed in all %d are taken", e.Total, e.Taken)
	}
	return fmt.Sprintf("%v for %d bytes in %s%s: %s tier of rank %d: %v: make room, use more ranks, or offload less", ErrSpace, e.Bytes, where, free, e.Tier, e.Rank, e.Err)
}

// Unwrap returns ErrSpace and Err.
func (e *SpaceError) Unwrap() []error { return []error{ErrSpace, e.Err} }
