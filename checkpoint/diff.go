package checkpoint

import (
	"fmt"
	"math"
	"slices"
)

// Difference is where two checkpoints part.
type Difference struct {
	Tensor  string // "state/parameter"
	What    string // of the shape or existence; "" where values differ
	Element int    // the first that differs
	A, B    float32
	Count   int // elements that differ
	Of      int
}

func (d Difference) String() string {
	if d.What != "" {
		return d.Tensor + ": " + d.What
	}
	return fmt.Sprintf("%s: %d of %d elements differ, the first at %d: %v and %v", d.Tensor, d.Count, d.Of, d.Element, d.A, d.B)
}

// scanElements is how many elements are compared or looked at together.
const scanElements = 1 << 18

// Diff compares the state of two steps bit by bit, in the order of a's manifest, and calls differ for each tensor that is not the
// same, until it returns false.
func Diff(a, b *Saved, differ func(Difference) bool) error {
	x, y := make([]float32, scanElements), make([]float32, scanElements)
	for _, p := range a.Manifest.Params {
		other, ok := b.Param(p.Name)
		for _, state := range a.Manifest.StatesOf(p) {
			d := Difference{Tensor: Piece{Param: p.Name, State: state}.key(), Of: p.Len()}
			switch {
			case !ok || !slices.Contains(b.Manifest.StatesOf(other), state):
				d.What = "only in the first"
			case !slices.Equal(p.Shape, other.Shape):
				d.What = fmt.Sprintf("shape %v and %v", p.Shape, other.Shape)
			default:
				if err := d.compare(a, b, p.Name, [2][]float32{x, y}, state); err != nil {
					return err
				}
				if d.Count == 0 {
					continue
				}
			}
			if !differ(d) {
				return nil
			}
		}
	}
	for _, p := range b.Manifest.Params {
		other, ok := a.Param(p.Name)
		for _, state := range b.Manifest.StatesOf(p) {
			if !ok || !slices.Contains(a.Manifest.StatesOf(other), state) {
				if !differ(Difference{Tensor: Piece{Param: p.Name, State: state}.key(), What: "only in the second"}) {
					return nil
				}
			}
		}
	}
	return nil
}

func (d *Difference) compare(a, b *Saved, param string, buf [2][]float32, state string) error {
	for lo := 0; lo < d.Of; lo += scanElements {
		n := min(scanElements, d.Of-lo)
		x, y := buf[0][:n], buf[1][:n]
		if err := a.Read(param, state, lo, x); err != nil {
			return err
		}
		if err := b.Read(param, state, lo, y); err != nil {
			return err
		}
		for i := range x {
			if math.Float32bits(x[i]) != math.Float32bits(y[i]) {
				if d.Count == 0 {
					d.Element, d.A, d.B = lo+i, x[i], y[i]
				}
				d.Count++
			}
		}
	}
	return nil
}

// Figures is what a tensor looks like.
type Figures struct {
	Norm           float64 // Euclidean
	Min, Max       float32 // of the finite elements
	NotFinite      int
	FirstNotFinite int // the first element that is not finite, -1 for none
}

// Figures looks at all elements of a state of a parameter.
func (s *Saved) Figures(param, state string) (Figures, error) {
	p, ok := s.Param(param)
	if !ok {
		return Figures{}, fmt.Errorf("%w: %s has no parameter %q", ErrMismatch, s.dir, param)
	}
	f := Figures{FirstNotFinite: -1}
	squares, first := 0.0, true
	buf := make([]float32, min(scanElements, p.Len()))
	for lo := 0; lo < p.Len(); lo += len(buf) {
		part := buf[:min(len(buf), p.Len()-lo)]
		if err := s.Read(param, state, lo, part); err != nil {
			return f, err
		}
		for i, v := range part {
			if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
				if f.NotFinite++; f.FirstNotFinite < 0 {
					f.FirstNotFinite = lo + i
				}
				continue
			}
			squares += float64(float64(v) * float64(v))
			if first || v < f.Min {
				f.Min = v
			}
			if first || v > f.Max {
				f.Max = v
			}
			first = false
		}
	}
	f.Norm = math.Sqrt(squares)
	return f, nil
}
