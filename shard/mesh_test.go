package shard_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"zeroshard/shard"
)

func TestMesh(t *testing.T) {
	m := mesh(t, 2, 4)
	if m.String() != "replicate=2 shard=4" || m.World() != 8 {
		t.Errorf("%v has %d ranks", m, m.World())
	}
	for _, tc := range []struct {
		axis  shard.Axis
		size  int
		coord int   // of rank 6
		ranks []int // of rank 6's group
	}{
		{shard.Shards, 4, 2, []int{4, 5, 6, 7}},
		{shard.Replicate, 2, 1, []int{2, 6}},
		{shard.World, 8, 6, []int{0, 1, 2, 3, 4, 5, 6, 7}},
		{shard.None, 1, 0, []int{6}},
		{"tensor", 1, 0, []int{6}},
	} {
		if m.Size(tc.axis) != tc.size || m.Coord(6, tc.axis) != tc.coord || !slices.Equal(m.Ranks(6, tc.axis), tc.ranks) {
			t.Errorf("axis %q: size %d, coordinate %d, ranks %v, want %+v", tc.axis, m.Size(tc.axis), m.Coord(6, tc.axis), m.Ranks(6, tc.axis), tc)
		}
	}
	var one shard.Mesh
	if one.Validate() != nil || one.World() != 1 || one.Size(shard.Shards) != 1 || one.Coord(0, shard.Shards) != 0 || one.String() != "" {
		t.Error("the zero mesh is not one rank")
	}
}

// Groups of one axis split the ranks, and rank and coordinates say the same.
func TestMeshGroups(t *testing.T) {
	m := shard.Mesh{Names: []shard.Axis{"a", "b", "c"}, Sizes: []int{3, 2, 5}}
	for _, axis := range append([]shard.Axis{shard.World, shard.None}, m.Names...) {
		member := make([]int, m.World())
		for rank := range m.World() {
			group := m.Ranks(rank, axis)
			if len(group) != m.Size(axis) || group[m.Coord(rank, axis)] != rank {
				t.Fatalf("axis %q: rank %d at %d is in %v", axis, rank, m.Coord(rank, axis), group)
			}
			for _, peer := range group {
				member[peer]++
				if !slices.Equal(m.Ranks(peer, axis), group) {
					t.Fatalf("axis %q: ranks %d and %d see other groups", axis, rank, peer)
				}
			}
		}
		for rank, n := range member {
			if n != m.Size(axis) {
				t.Errorf("axis %q: rank %d is in %d groups' lists, want %d", axis, rank, n, m.Size(axis))
			}
		}
	}
}

func TestMeshValidate(t *testing.T) {
	for _, tc := range []struct {
		name string
		mesh shard.Mesh
		want []string
	}{
		{"sizes", shard.Mesh{Names: []shard.Axis{"a", "b"}, Sizes: []int{0, -2}}, []string{`axis "a" has size 0`, `axis "b" has size -2`}},
		{"twice", shard.Mesh{Names: []shard.Axis{"a", "a"}, Sizes: []int{2, 2}}, []string{`name "a" is reserved or taken`}},
		{"reserved", shard.Mesh{Names: []shard.Axis{"world", ""}, Sizes: []int{2, 2}}, []string{`name "world"`, `name ""`}},
		{"lengths", shard.Mesh{Names: []shard.Axis{"a"}}, []string{"1 names for 0 sizes"}},
		{"overflow", shard.Mesh{Names: []shard.Axis{"a", "b"}, Sizes: []int{2, math.MaxInt}}, []string{"more than"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := tc.mesh.Validate()
			if !errors.Is(err, shard.ErrMesh) {
				t.Fatalf("error %v", err)
			}
			lines := strings.Split(err.Error(), "\n")
			if len(lines) != len(tc.want) {
				t.Fatalf("faults %q, want %q", lines, tc.want)
			}
			for i := range lines {
				if !strings.HasPrefix(lines[i], "shard: ") || !strings.Contains(lines[i], tc.want[i]) {
					t.Errorf("fault %q, want %q", lines[i], tc.want[i])
				}
			}
		})
	}
	if _, err := shard.NewMesh(2, 0); !errors.Is(err, shard.ErrMesh) {
		t.Errorf("NewMesh(2, 0): %v", err)
	}
}

// The largest sizes that a layout and a mesh allow do not overflow.
func TestLargestSizes(t *testing.T) {
	l := layout(t, vec("w", math.MaxInt/shard.Grain-shard.Grain))
	for _, m := range []shard.Mesh{mesh(t, 1, 1), mesh(t, 1, math.MaxInt32), mesh(t, math.MaxInt32, 1), mesh(t, 46340, 46340)} {
		full, n := l.FullLen(0, m), l.Flats[0].Len
		if full < n || full-n >= shard.Grain*(m.World()+1) {
			t.Errorf("%v: full buffer of %d for %d elements", m, full, n)
		}
		last := m.Size(shard.Shards) - 1
		if r := l.Shard(0, last, m); r.Hi != n || r.Lo < 0 {
			t.Errorf("%v: last shard is %v of %d", m, r, n)
		}
	}
}
