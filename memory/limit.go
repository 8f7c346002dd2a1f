package memory

import (
	"cmp"
	"slices"

	"zeroshard/internal/invariants"
)

// Limit refuses reservations past a number of bytes. It is an Observer.
type Limit struct {
	limit int64
	used  int64
	held  []Block
}

// NewLimit returns a limit of bytes in all.
func NewLimit(bytes int64) *Limit { return &Limit{limit: bytes} }

// Reserve refuses with a *LimitError.
func (l *Limit) Reserve(name string, bytes int64) error {
	if bytes > l.limit-l.used {
		held := slices.Clone(l.held)
		slices.SortStableFunc(held, func(a, b Block) int { return cmp.Compare(b.Bytes, a.Bytes) })
		return &LimitError{Want: Block{name, bytes}, Limit: l.limit, Held: held}
	}
	l.used += bytes
	l.held = append(l.held, Block{name, bytes})
	return nil
}

// Release takes a block off the list.
func (l *Limit) Release(name string, bytes int64) {
	i := slices.Index(l.held, Block{name, bytes})
	invariants.Check(i >= 0, "memory: release of %d bytes of %q, which were not reserved", bytes, name)
	if i >= 0 {
		l.held = slices.Delete(l.held, i, i+1)
		l.used -= bytes
	}
}

// Begin does nothing: a span lies in memory that is reserved already.
func (l *Limit) Begin(Span) {}

// End does nothing.
func (l *Limit) End(Span) {}
