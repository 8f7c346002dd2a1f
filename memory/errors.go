package memory

import (
	"errors"
	"fmt"
	"strings"
)

// Errors of this package. All texts start with "memory: ".
var (
	ErrLimit  = errors.New("memory: limit reached")
	ErrClosed = errors.New("memory: arena closed")
	ErrSize   = errors.New("memory: bad size")
)

// Block is reserved memory with its owner.
type Block struct {
	Name  string
	Bytes int64
}

// LimitError says what did not fit, and who holds the rest. It wraps ErrLimit.
type LimitError struct {
	Want  Block   // what was asked for
	Limit int64   // bytes
	Held  []Block // largest first, equal ones in order of reservation
}

// Used is the bytes of Held.
func (e *LimitError) Used() (n int64) {
	for _, b := range e.Held {
		n += b.Bytes
	}
	return n
}

// Shortfall is the bytes by which the limit would have to grow.
func (e *LimitError) Shortfall() int64 { return e.Want.Bytes - (e.Limit - e.Used()) }

// Error is a line and a table: what was wanted first, then what is held, largest first.
func (e *LimitError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v: %q needs %s, %s of %s are free: raise the limit by %s or reserve less",
		ErrLimit, e.Want.Name, FormatBytes(e.Want.Bytes), FormatBytes(e.Limit-e.Used()), FormatBytes(e.Limit), FormatBytes(e.Shortfall()))
	rows := []Block{{"wanted: " + e.Want.Name, e.Want.Bytes}}
	for _, h := range e.Held {
		rows = append(rows, Block{"held: " + h.Name, h.Bytes})
	}
	rows = append(rows, Block{"limit", e.Limit}, Block{"short", e.Shortfall()})
	writeTable(&b, rows)
	return b.String()
}

// Unwrap returns ErrLimit.
func (e *LimitError) Unwrap() error { return ErrLimit }

// writeTable writes one row a line: name, exact bytes, readable bytes.
func writeTable(b *strings.Builder, rows []Block) {
	names, digits := 0, 0
	for _, r := range rows {
		names = max(names, len(r.Name))
		digits = max(digits, len(fmt.Sprint(r.Bytes)))
	}
	for _, r := range rows {
		fmt.Fprintf(b, "\n  %-*s  %*d bytes  %s", names, r.Name, digits, r.Bytes, FormatBytes(r.Bytes))
	}
}
