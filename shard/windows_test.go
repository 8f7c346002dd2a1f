package shard_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"zeroshard/shard"
)

// nodes returns the ranges of the tree over leaves 0…n−1.
func nodes(n int) map[shard.Range]bool {
	out := map[shard.Range]bool{}
	var walk func(lo, hi int)
	walk = func(lo, hi int) {
		out[shard.Range{Lo: lo, Hi: hi}] = true
		if split := shard.Tree(hi - lo); split > 0 {
			walk(lo, lo+split)
			walk(lo+split, hi)
		}
	}
	walk(0, n)
	return out
}

func TestTree(t *testing.T) {
	for n, want := range []int{0, 0, 1, 2, 2, 4, 4, 4, 4, 8} {
		if got := shard.Tree(n); got != want {
			t.Errorf("Tree(%d) = %d, want %d", n, got, want)
		}
	}
}

// For all M ≤ 64, W ≤ M and every size allowed: each leaf is computed once, each rank's leaves in a window are one node of the tree,
// only the end of a window idles, and no rank computes more than ⌈M/W⌉ leaves.
func TestWindowsCoverTheTree(t *testing.T) {
	for m := 1; m <= 64; m++ {
		tree := nodes(m)
		for ranks := 1; ranks <= m; ranks++ {
			for size := 1; ; size *= 2 {
				w, err := shard.NewWindows(m, ranks, size)
				if err != nil {
					if size == 1 || !errors.Is(err, shard.ErrWindows) {
						t.Fatal(err)
					}
					break
				}
				if w.Slots() != (m+ranks-1)/ranks {
					t.Fatalf("%+v: %d slots", w, w.Slots())
				}
				checkWindows(t, w, tree)
			}
		}
	}
}

func checkWindows(t *testing.T, w shard.Windows, tree map[shard.Range]bool) {
	t.Helper()
	next := 0
	for window := range w.Count {
		if w.Range(window, 0).Len() == 0 {
			t.Fatalf("%+v: nobody works in window %d", w, window)
		}
		for rank := range w.Ranks {
			r := w.Range(window, rank)
			if r.Lo != next || r.Len() < 0 || (r.Len() > 0 && tree != nil && !tree[r]) {
				t.Fatalf("%+v: rank %d in window %d has %v after leaf %d", w, rank, window, r, next)
			}
			for slot := range w.Size {
				leaf, ok := w.Leaf(window, rank, slot)
				if ok != (slot < r.Len()) || (ok && leaf != r.Lo+slot) {
					t.Fatalf("%+v: slot %d of %v is %d, %v", w, slot, r, leaf, ok)
				}
			}
			next = r.Hi
		}
	}
	if next != w.Leaves {
		t.Fatalf("%+v: %d leaves computed", w, next)
	}
}

func TestNewWindowsTakesTheLargest(t *testing.T) {
	for _, tc := range []struct{ leaves, ranks, size, count int }{
		{8, 3, 1, 3}, {8, 8, 1, 1}, {8, 2, 4, 1}, {8, 1, 8, 1}, {6, 1, 2, 3}, {7, 1, 1, 7}, {7, 2, 4, 1}, {64, 5, 1, 13}, {24, 2, 4, 3},
	} {
		w, err := shard.NewWindows(tc.leaves, tc.ranks, 0)
		if err != nil || w.Size != tc.size || w.Count != tc.count {
			t.Errorf("%d leaves on %d ranks: %+v, %v, want size %d, count %d", tc.leaves, tc.ranks, w, err, tc.size, tc.count)
		}
		// The definition, literally: no larger power of two keeps the number of leaves a rank computes.
		for g := 2 * w.Size; g <= 2*tc.leaves; g *= 2 {
			if (tc.leaves+tc.ranks*g-1)/(tc.ranks*g)*g == (tc.leaves+tc.ranks-1)/tc.ranks {
				t.Errorf("%+v: size %d would do too", w, g)
			}
		}
	}
}

func TestWindowsRefused(t *testing.T) {
	_, err := shard.NewWindows(8, 9, 0)
	var we *shard.WorldError
	if !errors.Is(err, shard.ErrWorld) || !errors.As(err, &we) || !slices.Equal(we.Nearest, []int{8}) ||
		!strings.Contains(err.Error(), "use at most 8 ranks, or at least 9 leaves") {
		t.Errorf("9 ranks, 8 leaves: %v", err)
	}
	for _, bad := range [][2]int{{0, 1}, {1, 0}, {-1, -1}} {
		if _, err := shard.NewWindows(bad[0], bad[1], 0); !errors.Is(err, shard.ErrWorld) {
			t.Errorf("NewWindows(%v): %v", bad, err)
		}
		if _, err := shard.EvalWindows(bad[0], bad[1]); !errors.Is(err, shard.ErrWorld) {
			t.Errorf("EvalWindows(%v): %v", bad, err)
		}
	}
	for _, size := range []int{-1, 3, 8, 16} {
		if _, err := shard.NewWindows(8, 2, size); !errors.Is(err, shard.ErrWindows) || !strings.Contains(err.Error(), "power of two up to 4") {
			t.Errorf("size %d: %v", size, err)
		}
	}
}

func TestEvalWindows(t *testing.T) {
	for _, tc := range []struct{ leaves, ranks, count int }{{1, 5, 1}, {7, 3, 3}, {8, 8, 1}, {3, 8, 1}} {
		w, err := shard.EvalWindows(tc.leaves, tc.ranks)
		if err != nil || w.Size != 1 || w.Count != tc.count {
			t.Errorf("%+v: %+v, %v", tc, w, err)
		}
		checkWindows(t, w, nil)
	}
}

func TestReplicaLeaves(t *testing.T) {
	for _, tc := range []struct {
		leaves, replicas, want int
		nearest                []int
	}{
		{7, 1, 7, nil}, {8, 2, 4, nil}, {8, 8, 1, nil}, {12, 3, 4, nil}, {12, 6, 2, nil},
		{12, 2, 0, []int{1, 3, 6, 12}}, {8, 3, 0, []int{1, 2, 4, 8}}, {8, 16, 0, []int{1, 2, 4, 8}}, {7, 2, 0, []int{1, 7}},
	} {
		got, err := shard.ReplicaLeaves(tc.leaves, tc.replicas)
		if got != tc.want || (err == nil) != (tc.nearest == nil) {
			t.Errorf("%d leaves, %d replicas: %d, %v", tc.leaves, tc.replicas, got, err)
		}
		var we *shard.WorldError
		if err != nil && (!errors.Is(err, shard.ErrWorld) || !errors.As(err, &we) || !slices.Equal(we.Nearest, tc.nearest)) {
			t.Errorf("%d leaves, %d replicas: %v, want nearest %v", tc.leaves, tc.replicas, err, tc.nearest)
		}
		for _, r := range tc.nearest {
			if _, err := shard.ReplicaLeaves(tc.leaves, r); err != nil {
				t.Errorf("advised %d replicas of %d leaves, but %v", r, tc.leaves, err)
			}
		}
	}
	if _, err := shard.ReplicaLeaves(0, 2); !errors.Is(err, shard.ErrWorld) {
		t.Errorf("no leaves: %v", err)
	}
}

// Each replica's leaves are one node of the tree over all leaves, so the fold across replicas continues the same tree.
func TestReplicasAreNodes(t *testing.T) {
	for m := 1; m <= 64; m++ {
		tree := nodes(m)
		for replicas := 2; replicas <= m; replicas++ {
			n, err := shard.ReplicaLeaves(m, replicas)
			for r := 0; err == nil && r < replicas; r++ {
				if !tree[shard.Range{Lo: r * n, Hi: (r + 1) * n}] {
					t.Errorf("%d leaves, %d replicas: replica %d is no node", m, replicas, r)
				}
			}
		}
	}
}
