package optim

import (
	"errors"
	"fmt"
	"math"
)

// Kind is the shape of a schedule after its warm-up.
type Kind string

// The kinds.
const (
	Cosine   Kind = "cosine"
	Linear   Kind = "linear"
	Constant Kind = "constant"
)

// Schedule is a learning rate over steps: up in a straight line over Warmup steps, then down to Floor·Base at Steps. It is a pure
// function of the step, so a resumed run goes on where it was.
type Schedule struct {
	Kind   Kind    // Bits: changed.
	Base   float64 // the highest rate. Bits: changed.
	Warmup int     // steps; the rate of step s ≤ Warmup is Base·s/Warmup. Bits: changed.
	Steps  int     // the last step. Bits: changed.
	Floor  float64 // fraction of Base at the end. Bits: changed.
}

// Validate reports all faults at once.
func (s Schedule) Validate() error {
	var errs []error
	check := func(ok bool, format string, v any) {
		if !ok {
			errs = append(errs, fmt.Errorf("%w: "+format, ErrOptimizer, v))
		}
	}
	check(s.Kind == Cosine || s.Kind == Linear || s.Kind == Constant, "schedule %q: use cosine, linear or constant", s.Kind)
	check(s.Base >= 0 && s.Base <= math.MaxFloat32, "learning rate %v: use 0 or more", s.Base)
	check(s.Warmup >= 0, "warm-up of %v steps: use 0 or more", s.Warmup)
	check(s.Steps >= 1, "%v steps: use 1 or more", s.Steps)
	check(s.Floor >= 0 && s.Floor <= 1, "floor %v: use 0 to 1", s.Floor)
	return errors.Join(errs...)
}

// LR is the rate of a step; steps count from 1. Past Steps it stays at the floor.
func (s Schedule) LR(step int) float64 {
	if step <= s.Warmup {
		return s.Base * (float64(step) / float64(s.Warmup)) // the quotient first: it ends at 1, and the rate at Base, to the bit
	}
	if s.Kind == Constant || s.Steps <= s.Warmup {
		return s.Base
	}
	done := min(float64(step-s.Warmup)/float64(s.Steps-s.Warmup), 1)
	left := 1 - done
	if s.Kind == Cosine {
		left = (1 + cosine(done)) / 2
	}
	return s.Base * (s.Floor + float64((1-s.Floor)*left))
}

// cosine is cos(πx) for x in [0,1], by folding and a series: operations in a fixed order, each rounded, so that machines with fused
// multiply-add get the same learning rate, which math.Cos does not promise.
func cosine(x float64) float64 {
	switch {
	case x > 0.5:
		return -cosine(1 - x) // 1−x is exact
	case x > 0.25: // sin(π(½−x))
		y := math.Pi * (0.5 - x)
		return y * series(float64(y*y), 19)
	}
	y := math.Pi * x
	return series(float64(y*y), 18)
}

// series is 1 − z/((n−1)n)·(1 − …) inside out, down to n = 2 or 3: cos √z for even last, sin √z / √z for odd.
func series(z float64, last int) float64 {
	s := 1.0
	for n := last; n >= 2; n -= 2 {
		s = 1 - float64(z*s)/float64(n*(n-1))
	}
	return s
}
