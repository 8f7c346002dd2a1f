package collectives

import (
	"fmt"
	"math/bits"
	"strings"

	"zeroshard/device"
)

// The order of additions is part of the contract, so this file is where "same bits for every world" is earned.
//
// The M leaves of a step are summed over one fixed tree: a tree over n leaves splits at the largest power of two below n, so a
// subtree is aligned at its size, except along the right edge, where it is what is left:
//
//	M = 6        ((0+1)+(2+3)) + (4+5)
//	M = 7        ((0+1)+(2+3)) + ((4+5)+6)
//
// In window w rank r holds leaves [(wW+r)g, +g) ∩ [0, M) with g a power of two. That range is aligned at g, so it is one node of
// the tree; the rank has added it up itself, in tree order, and its sum is the rank's part. What is left is to add parts.
//
// The owner of a slice keeps a stack of finished nodes that no later leaf can join except by addition: the carry. A part is
// pushed; while the two topmost nodes have equal sizes they are siblings and merge. Sizes on the stack therefore fall strictly
// from bottom to top like the bits of a binary counter, which is why the carry after k parts has popcount(k) slots, and why equal
// sizes are always adjacent and aligned. After the last part the right edge remains: merging from the top until one node
// is left rebuilds it, since each split of the tree takes the largest power of two off the left.
//
// A window can begin with a carry and need not end with a whole node: W = 3, M = 8, g = 1
//
//	window 0: push 0,1,2   →  (0+1) 2
//	window 1: push 3,4,5   →  ((0+1)+(2+3)) (4+5)
//	window 2: push 6,7     →  the root
//
// All of this is known before the run. NewFold does it once with names in place of numbers and keeps the additions as a
// straight-line program: Run has no stack and no decisions.
//
// Aliases. Out[i] may be In[i], and the only Out may be the caller's own part. So a slot of Out must not be written while
// something under it is still to be read. It is written by one operation only, the last that computes it; everything in between
// goes to temporaries. When Out[i] is written, In[i] has been read: only the merges at depth i and below read it, and the value
// that rests at depth i is their last. And when the only Out is written, nothing is left to be read at all. Run works in
// chunks and finishes each before the next, so temporaries stay in the cache, and what holds for the program holds for each chunk.

// FoldID says which fold it is. Folds with equal IDs are equal.
type FoldID struct {
	Size   int // ranks
	Leaves int // of all ranks and windows
	Window int // g: leaves a rank and window
	Index  int // w
}

// Fold is the arithmetic of one window's reduction: which ranks have a part, and the additions that fold the parts and
// the carry of earlier windows into the new carry, in the order of the tree. Compiled once, the same on every rank.
type Fold struct {
	FoldID
	In, Out int    // number of carry slots read and written
	Present []bool // by rank: it has a part in this window
	Temps   int    // number of temporaries that Ops use
	Ops     []Op   // in order
}

// Op is Dst = A + B, or the copy Dst = A where B is nothing.
type Op struct{ Dst, A, B Operand }

// Operand names a value of a fold's program.
type Operand struct {
	From Place
	I    int
}

// Place is where an operand lies.
type Place uint8

// The places. I of an Operand is the rank of a part, else the number of the slot.
const (
	Nothing Place = iota
	Part
	InSlot
	OutSlot
	Temp
)

func (x Operand) String() string {
	return fmt.Sprintf("%s%d", [...]string{"nothing", "part", "in", "out", "tmp"}[x.From], x.I)
}

// String is the program, one operation a line.
func (f *Fold) String() string {
	var b strings.Builder
	for _, op := range f.Ops {
		fmt.Fprintf(&b, "  %v = %v", op.Dst, op.A)
		if op.B.From != Nothing {
			fmt.Fprintf(&b, " + %v", op.B)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Chunk is the number of elements that Run adds at a time: three operands of 16 KiB fit in the first cache or nearly.
const Chunk = 4096

// NewFold returns the fold of window w for a group of size ranks and leaves leaves, window leaves a rank and window (a power of two).
// A rank without leaves in the window has no part. Its error wraps ErrArgument.
func NewFold(size, leaves, window, w int) (*Fold, error) {
	if size < 1 || leaves < 1 {
		return nil, argument("fold of %d leaves on %d ranks: want at least one of each", leaves, size)
	}
	if window < 1 || bits.OnesCount(uint(window)) != 1 {
		return nil, argument("fold with %d leaves a rank and window: want a power of two", window)
	}
	if n := Windows(size, leaves, window); w < 0 || w >= n {
		return nil, argument("fold of window %d: %d leaves on %d ranks make %d windows of %d", w, leaves, size, n, window)
	}
	f := &Fold{FoldID: FoldID{size, leaves, window, w}, Present: make([]bool, size)}
	c := compiler{fold: f}
	c.run()
	return f, nil
}

// ReplicaFold folds one part of each of size ranks in the order of ranks: across replicas, each of which holds an equal
// power of two of leaves, that is the upper part of the tree.
func ReplicaFold(size int) (*Fold, error) { return NewFold(size, size, 1, 0) }

// Windows is the number of windows: ⌈leaves/(size·window)⌉.
func Windows(size, leaves, window int) int {
	parts := (leaves-1)/window + 1
	return (parts-1)/size + 1
}

// Slots is the largest carry between two windows, in slots: 0 with one window, else at most ⌊log₂ leaves⌋+1.
func Slots(size, leaves, window int) (n int) {
	for w := 1; w < Windows(size, leaves, window); w++ {
		n = max(n, bits.OnesCount(uint(w*size)))
	}
	return n
}

// Operands are the buffers of one run: Out, In and Temps as the fold says, Parts by rank, all fp32 and equally long. Where a
// rank has no part its entry is not looked at. Temps need not be longer than Chunk.
type Operands struct{ Out, In, Parts, Temps []device.Buffer }

// Run folds on the calling goroutine. All operands must be in memory that the CPU can address.
func (f *Fold) Run(folder Folder, s device.Stream, o *Operands) {
	n := o.Out[0].Len
	step := Chunk
	if f.Temps == 0 && len(f.Ops) == 1 { // nothing to keep in the cache: one call, which may use all threads
		step = n
	}
	for lo := 0; lo < n; lo += step {
		hi := min(lo+step, n)
		for _, op := range f.Ops {
			dst, a := o.at(op.Dst, lo, hi), o.at(op.A, lo, hi)
			if op.B.From == Nothing {
				copy(dst.Raw(), a.Raw())
			} else {
				folder.Add(s, dst, a, o.at(op.B, lo, hi))
			}
		}
	}
}

// at is elements [lo, hi) of an operand.
func (o *Operands) at(x Operand, lo, hi int) device.Buffer {
	switch x.From {
	case Part:
		return o.Parts[x.I].Slice(lo, hi)
	case InSlot:
		return o.In[x.I].Slice(lo, hi)
	case OutSlot:
		return o.Out[x.I].Slice(lo, hi)
	default:
		return o.Temps[x.I].Slice(0, hi-lo)
	}
}
