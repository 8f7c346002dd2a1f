package collectives

// Fold is the arithmetic of one window's reduction: which ranks have a part, and the additions that fold the parts and
// the carry of earlier windows into the new carry, in the order of the tree. Compiled once, the same on every rank.
type Fold struct {
	In, Out int    // number of carry slots read and written
	Present []bool // by rank: it has a part in this window
}

// NewFold returns the fold of window w for a group of size ranks and leaves leaves, window leaves a rank and window (a power of two).
func NewFold(size, leaves, window, w int) (*Fold, error) { return nil, nil }
