package shard

import (
	"fmt"
	"math/bits"
)

// Windows says which leaves of a batch a rank computes, and when.
//
// The gradients of M leaves are summed over one fixed tree on the leaf's number: a node over n leaves splits at the largest power of
// two below n. So that any number of ranks can add along that same tree, the batch is cut into windows of Size consecutive leaves a
// rank, Size a power of two: in window w, rank r computes leaves
//
//	[(w·Ranks+r)·Size, +Size) ∩ [0, Leaves)
//
// which starts at a multiple of Size and is full or the last, hence always one node of the tree. A rank folds its node by itself
// and sends one message per flat and window. Ranks without leaves in a window are at its end.
type Windows struct {
	Leaves int // M, of one replica
	Ranks  int // of one replica
	Size   int // leaves a rank computes in one window, at most: g
	Count  int // number of windows
}

// NewWindows cuts leaves over ranks for training. A rank computes at most ⌈Leaves/Ranks⌉ leaves, whatever the size: that bounds size
// to powers of two g with ⌈M/(W·g)⌉·g = ⌈M/W⌉. Size 0 is the largest of them. Errors are ErrWorld (more ranks than leaves)
// and ErrWindows.
func NewWindows(leaves, ranks, size int) (Windows, error) {
	if leaves < 1 || ranks < 1 {
		return Windows{}, fmt.Errorf("%w: %d leaves on %d ranks, want at least one of each", ErrWorld, leaves, ranks)
	}
	if ranks > leaves {
		return Windows{}, &WorldError{Leaves: leaves, Ranks: ranks, Nearest: []int{leaves}}
	}
	largest := largestWindow(leaves, ranks)
	if size == 0 {
		size = largest
	}
	if size < 0 || size&(size-1) != 0 || size > largest {
		return Windows{}, fmt.Errorf("%w: %d leaves a rank and window, want a power of two up to %d (%d leaves on %d ranks), or 0 for that",
			ErrWindows, size, largest, leaves, ranks)
	}
	return cut(leaves, ranks, size), nil
}

// EvalWindows cuts leaves over ranks for passes without gradients: windows of one leaf, and ranks may stay idle.
func EvalWindows(leaves, ranks int) (Windows, error) {
	if leaves < 1 || ranks < 1 {
		return Windows{}, fmt.Errorf("%w: %d leaves on %d ranks, want at least one of each", ErrWorld, leaves, ranks)
	}
	return cut(leaves, ranks, 1), nil
}

func cut(leaves, ranks, size int) Windows {
	return Windows{Leaves: leaves, Ranks: ranks, Size: size, Count: ceilDiv(ceilDiv(leaves, ranks), size)}
}

// largestWindow is the largest power of two g with ⌈M/(W·g)⌉·g = ⌈M/W⌉. As ⌈M/(W·g)⌉ = ⌈⌈M/W⌉/g⌉, that is the largest one that
// divides ⌈M/W⌉, and every smaller power of two fulfils it too.
func largestWindow(leaves, ranks int) int {
	n := ceilDiv(leaves, ranks)
	return n & -n
}

// Slots is the number of leaves that a rank computes at most.
func (w Windows) Slots() int { return w.Count * w.Size }

// Range returns the leaves of rank in window: none (Lo = Hi) where the rank idles.
func (w Windows) Range(window, rank int) Range {
	lo := (window*w.Ranks + rank) * w.Size
	return Range{min(lo, w.Leaves), min(lo+w.Size, w.Leaves)}
}

// Leaf returns the slot-th leaf (below Size) of rank in window, false where it has none.
func (w Windows) Leaf(window, rank, slot int) (int, bool) {
	r := w.Range(window, rank)
	return r.Lo + slot, slot < r.Len()
}

// ReplicaLeaves is the number of leaves of each of several replicas: replica ρ takes [ρ·n, (ρ+1)·n). With more than one, n must
// be whole and a power of two, so that each replica's leaves are one node of the tree; else the error is ErrWorld.
func ReplicaLeaves(leaves, replicas int) (int, error) {
	if leaves < 1 || replicas < 1 {
		return 0, fmt.Errorf("%w: %d leaves on %d replicas, want at least one of each", ErrWorld, leaves, replicas)
	}
	if replicas == 1 {
		return leaves, nil
	}
	if n := leaves / replicas; leaves%replicas == 0 && n&(n-1) == 0 {
		return n, nil
	}
	e := &WorldError{Leaves: leaves, Ranks: replicas, Replicas: true}
	pow := leaves & -leaves
	if pow != leaves {
		e.Nearest = append(e.Nearest, 1)
	}
	for r := leaves / pow; r <= leaves; r *= 2 {
		e.Nearest = append(e.Nearest, r)
	}
	return 0, e
}

// Tree is where a node over n leaves splits: the largest power of two below n, 0 for a leaf.
func Tree(n int) int {
	if n < 2 {
		return 0
	}
	return 1 << (bits.Len(uint(n-1)) - 1)
}
