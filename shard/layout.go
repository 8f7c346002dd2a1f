package shard

import "iter"

// Grain is the unit of offsets, padding and shards: 128 elements, whatever the dtype.
const Grain = 128

// Param is one parameter as the model names it. A zero in Shape makes a parameter without elements; an empty Shape is a scalar.
type Param struct {
	Name    string
	Shape   []int
	NoDecay bool // no weight decay (biases, norms)
	Frozen  bool // no gradient and no optimizer state
}

// Len is the number of elements.
func (p Param) Len() int {
	n := 1
	for _, d := range p.Shape {
		n *= d
	}
	return n
}

// FlatSpec is a list of parameters that a model wants stored, gathered and reduced together.
type FlatSpec struct {
	Name   string
	Params []Param
}

// Range is elements [Lo, Hi).
type Range struct{ Lo, Hi int }

// Len is the number of elements.
func (r Range) Len() int { return r.Hi - r.Lo }

// Segment is a parameter's place in its flat. Cut by Pieces, Range is the part of the flat, and From the first element of the
// parameter that lies there.
type Segment struct {
	Param Param
	Range Range
	From  int
}

// Class says which row of the strategy a flat follows.
type Class uint8

// The classes.
const (
	Sharded Class = iota // as the strategy says
	Kept                 // under the persistence threshold: values stay whole on every rank
	Frozen               // no gradient, no optimizer state
)

// Flat is parameters of one class and one spec in one piece of memory. Each parameter starts at a multiple of Grain.
type Flat struct {
	Name  string // the spec's name, with "+kept" or "+frozen" behind it for those classes
	Spec  string
	Class Class
	Segs  []Segment // in the order of the spec
	Len   int       // in elements, a multiple of Grain
}

// Pieces yields the parts of parameters that lie in r, in order; parameters without elements in r are left out.
func (f *Flat) Pieces(r Range) iter.Seq[Segment] {
	return func(yield func(Segment) bool) {
		for _, s := range f.Segs {
			lo, hi := max(r.Lo, s.Range.Lo), min(r.Hi, s.Range.Hi)
			if lo < hi && !yield(Segment{Param: s.Param, Range: Range{lo, hi}, From: lo - s.Range.Lo}) {
				return
			}
		}
	}
}
