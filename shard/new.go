package shard

import (
	"errors"
	"fmt"
	"math"
)

// Layout is the flats of a model. It does not know the world.
type Layout struct{ Flats []Flat }

// maxLen bounds a layout's elements, padding included, so that their bytes, with padding for any mesh, still fit an int64.
const maxLen = math.MaxInt / Grain

// suffix of a flat's name by class.
var suffix = [...]string{Sharded: "", Kept: "+kept", Frozen: "+frozen"}

// NewLayout splits each spec by class into flats, in the order of specs and classes; a class without parameters makes no flat.
// Parameters of fewer than threshold elements that are not frozen are Kept (threshold 0: none). Each parameter starts at a multiple
// of Grain; one without elements has an empty range. The error joins a *LayoutError for each fault.
func NewLayout(specs []FlatSpec, threshold int) (*Layout, error) {
	if err := checkSpecs(specs); err != nil {
		return nil, err
	}
	l := &Layout{}
	for _, spec := range specs {
		for class := Sharded; class <= Frozen; class++ {
			f := Flat{Name: spec.Name + suffix[class], Spec: spec.Name, Class: class}
			for _, p := range spec.Params {
				if classOf(p, threshold) == class {
					f.place(p)
				}
			}
			if len(f.Segs) > 0 {
				l.Flats = append(l.Flats, f)
			}
		}
	}
	return l, nil
}

func classOf(p Param, threshold int) Class {
	switch {
	case p.Frozen:
		return Frozen
	case p.Len() < threshold:
		return Kept
	}
	return Sharded
}

func (f *Flat) place(p Param) {
	n := p.Len()
	f.Segs = append(f.Segs, Segment{Param: p, Range: Range{f.Len, f.Len + n}})
	f.Len += roundUp(n)
}

// roundUp returns the next multiple of Grain.
func roundUp(n int) int { return (n + Grain - 1) / Grain * Grain }

func checkSpecs(specs []FlatSpec) error {
	var errs []error
	specSeen, paramSeen, total := map[string]bool{}, map[string]string{}, 0
	for _, s := range specs {
		fault := func(param, format string, args ...any) {
			errs = append(errs, &LayoutError{Spec: s.Name, Param: param, Problem: fmt.Sprintf(format, args...)})
		}
		if s.Name == "" {
			fault("", "the name is empty")
		} else if specSeen[s.Name] {
			fault("", "a flat of this name exists already")
		}
		specSeen[s.Name] = true
		for i, p := range s.Params {
			if p.Name == "" {
				fault("", "parameter %d has no name", i)
			} else if other, ok := paramSeen[p.Name]; ok {
				fault(p.Name, "the name is taken by a parameter of flat %q", other)
			} else {
				paramSeen[p.Name] = s.Name
			}
			n, err := p.size()
			if err != nil {
				fault(p.Name, "%v", err)
			} else if total > maxLen-roundUp(n) {
				fault(p.Name, "the parameters up to here pass %d elements", maxLen)
			} else {
				total += roundUp(n)
			}
		}
	}
	return errors.Join(errs...)
}

// size is Len for shapes that nobody has checked yet.
func (p Param) size() (int, error) {
	n, zero := 1, false
	for _, d := range p.Shape {
		if d < 0 {
			return 0, fmt.Errorf("shape %v has a negative dim", p.Shape)
		}
		zero = zero || d == 0
	}
	if zero {
		return 0, nil
	}
	for _, d := range p.Shape {
		if n > (maxLen-Grain)/d {
			return 0, fmt.Errorf("shape %v has more than %d elements", p.Shape, maxLen-Grain)
		}
		n *= d
	}
	return n, nil
}

// BySpec returns the indices of the flats that a spec was split into, in order.
func (l *Layout) BySpec(spec string) []int {
	var out []int
	for i := range l.Flats {
		if l.Flats[i].Spec == spec {
			out = append(out, i)
		}
	}
	return out
}

// Lookup finds a parameter by name: Flats[flat].Segs[seg].
func (l *Layout) Lookup(param string) (flat, seg int, ok bool) {
	for i := range l.Flats {
		for j := range l.Flats[i].Segs {
			if l.Flats[i].Segs[j].Param.Name == param {
				return i, j, true
			}
		}
	}
	return 0, 0, false
}

// Numel is the number of parameters' elements, Ψ in the papers: no padding in it.
func (l *Layout) Numel() int { return l.count(func(Class) bool { return true }) }

// Trainable is Numel without frozen parameters.
func (l *Layout) Trainable() int { return l.count(func(c Class) bool { return c != Frozen }) }

func (l *Layout) count(of func(Class) bool) (n int) {
	for i := range l.Flats {
		if of(l.Flats[i].Class) {
			n += l.Flats[i].Numel()
		}
	}
	return n
}

// Numel is the number of the flat's elements that belong to parameters.
func (f *Flat) Numel() (n int) {
	for i := range f.Segs {
		n += f.Segs[i].Range.Len()
	}
	return n
}
