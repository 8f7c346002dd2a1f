package optim_test

import (
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"

	"zeroshard/internal/golden"
	"zeroshard/optim"
)

var kinds = []optim.Kind{optim.Cosine, optim.Linear, optim.Constant}

// Learning rates are part of the result: the same bits on every machine.
func TestScheduleGolden(t *testing.T) {
	var b strings.Builder
	for _, kind := range kinds {
		for _, s := range []optim.Schedule{
			{Kind: kind, Base: 1e-3, Warmup: 3, Steps: 12, Floor: 0.1},
			{Kind: kind, Base: 6e-4, Steps: 7},
			{Kind: kind, Base: 0.3, Warmup: 5, Steps: 5, Floor: 0.5},
		} {
			fmt.Fprintf(&b, "%+v\n", s)
			for step := 1; step <= s.Steps+2; step++ {
				fmt.Fprintf(&b, "%4d %-24x %.9g\n", step, s.LR(step), s.LR(step))
			}
		}
	}
	golden.Check(t, "testdata/schedules.txt", b.String())
}

// Warm-up is a straight line to the base; then the rate falls, or stays, and ends at the floor to the bit.
func TestScheduleShapes(t *testing.T) {
	for _, kind := range kinds {
		for _, warmup := range []int{0, 1, 7, 100} {
			for _, floor := range []float64{0, 0.1, 1} {
				s := optim.Schedule{Kind: kind, Base: 3e-4, Warmup: warmup, Steps: 100, Floor: floor}
				name := fmt.Sprintf("%s, warm-up %d, floor %v", kind, warmup, floor)
				for step := 1; step <= warmup; step++ {
					if got, want := s.LR(step), s.Base*(float64(step)/float64(warmup)); got != want {
						t.Errorf("%s: LR(%d) = %v on the way up, want %v", name, step, got, want)
					}
				}
				if warmup > 0 && s.LR(warmup) != s.Base {
					t.Errorf("%s: the warm-up ends at %v", name, s.LR(warmup))
				}
				falls := kind != optim.Constant && floor < 1
				for step := max(warmup, 1); step < s.Steps; step++ {
					a, b := s.LR(step), s.LR(step+1)
					if falls && !(b < a) || !falls && b != a {
						t.Errorf("%s: from %v at step %d to %v", name, a, step, b)
					}
				}
				end := s.Base
				if falls && warmup < s.Steps {
					end = s.Base * floor
				}
				for _, step := range []int{s.Steps, s.Steps + 1, math.MaxInt} {
					if got := s.LR(step); got != end {
						t.Errorf("%s: LR(%d) = %v, want %v", name, step, got, end)
					}
				}
			}
		}
	}
}

// The warm-up ends at the base to the bit, whatever both are.
func TestWarmupEndsAtBase(t *testing.T) {
	for _, base := range []float64{1e-3, 3e-4, 0.3, 2.5e-4} {
		for warmup := 1; warmup < 1000; warmup++ {
			if s := (optim.Schedule{Kind: optim.Constant, Base: base, Warmup: warmup, Steps: 1}); s.LR(warmup) != base {
				t.Errorf("a warm-up of %d steps to %v ends at %v", warmup, base, s.LR(warmup))
			}
		}
	}
}

// The cosine is symmetric about its middle: what is lost in the first half is what is left in the second.
func TestCosineIsSymmetric(t *testing.T) {
	s := optim.Schedule{Kind: optim.Cosine, Base: 1, Steps: 1 << 10}
	for step := 1; step < 1<<10; step++ {
		sum := new(big.Float).Add(big.NewFloat(s.LR(step)), big.NewFloat(s.LR(1<<10-step)))
		if d, _ := sum.Sub(sum, big.NewFloat(1)).Float64(); math.Abs(d) > 1e-16 {
			t.Errorf("LR(%d) + LR(%d) − 1 = %v", step, 1<<10-step, d)
		}
	}
}
