package shard

import (
	"errors"
	"fmt"
	"strings"
)

// Axis names a direction of the mesh: "shard", "replicate". World is the whole mesh as one axis.
type Axis string

// The axes that the engine knows.
const (
	None      Axis = ""
	Shards    Axis = "shard"
	Replicate Axis = "replicate"
	World     Axis = "world"
)

// maxWorld bounds the ranks of a mesh, so that padding never overflows.
const maxWorld = 1<<31 - 1

// Mesh arranges the ranks along axes, row-major: the last axis is the one along which rank counts up. The zero Mesh is one rank.
type Mesh struct {
	Names []Axis
	Sizes []int
}

// NewMesh returns the mesh of hybrid sharding: rank = replica·shards + shard.
func NewMesh(replicas, shards int) (Mesh, error) {
	m := Mesh{Names: []Axis{Replicate, Shards}, Sizes: []int{replicas, shards}}
	return m, m.Validate()
}

// Validate returns all faults of m, joined, each an ErrMesh.
func (m Mesh) Validate() error {
	if len(m.Names) != len(m.Sizes) {
		return fmt.Errorf("%w: %d names for %d sizes", ErrMesh, len(m.Names), len(m.Sizes))
	}
	var errs []error
	seen, world := map[Axis]bool{None: true, World: true}, 1
	for i, a := range m.Names {
		if seen[a] {
			errs = append(errs, fmt.Errorf("%w: axis name %q is reserved or taken", ErrMesh, a))
		}
		seen[a] = true
		switch n := m.Sizes[i]; {
		case n < 1:
			errs = append(errs, fmt.Errorf("%w: axis %q has size %d, want at least 1", ErrMesh, a, n))
		case n > maxWorld/world:
			errs = append(errs, fmt.Errorf("%w: more than %d ranks", ErrMesh, maxWorld))
		default:
			world *= n
		}
	}
	return errors.Join(errs...)
}

// Size is the number of ranks along a: 1 for an axis that m does not have, all of them for World.
func (m Mesh) Size(a Axis) int {
	_, size := m.stride(a)
	return size
}

// World is the number of ranks.
func (m Mesh) World() int {
	n := 1
	for _, s := range m.Sizes {
		n *= s
	}
	return n
}

// stride returns the distance in rank between neighbours along a, and a's size.
func (m Mesh) stride(a Axis) (stride, size int) {
	if a == World {
		return 1, m.World()
	}
	stride = 1
	for i := len(m.Names) - 1; i >= 0; i-- {
		if m.Names[i] == a {
			return stride, m.Sizes[i]
		}
		stride *= m.Sizes[i]
	}
	return stride, 1
}

// Coord is rank's position along a: 0 for an axis that m does not have, rank itself for World.
func (m Mesh) Coord(rank int, a Axis) int {
	stride, size := m.stride(a)
	return rank / stride % size
}

// Ranks returns the ranks that differ from rank along a alone, rank among them, by their position on a.
func (m Mesh) Ranks(rank int, a Axis) []int {
	stride, size := m.stride(a)
	out := make([]int, size)
	first := rank - m.Coord(rank, a)*stride
	for i := range out {
		out[i] = first + i*stride
	}
	return out
}

// String is like "replicate=2 shard=4".
func (m Mesh) String() string {
	var b strings.Builder
	for i, a := range m.Names {
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "%s=%d", a, m.Sizes[i])
	}
	return b.String()
}
