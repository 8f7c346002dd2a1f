package optim_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"zeroshard/device"
	"zeroshard/kernels/ref"
	"zeroshard/optim"
)

func TestSchedule(t *testing.T) {
	cos := optim.Schedule{Kind: optim.Cosine, Base: 1e-3, Warmup: 10, Steps: 110, Floor: 0.1}
	lin, flat := cos, cos
	lin.Kind, flat.Kind = optim.Linear, optim.Constant
	none := optim.Schedule{Kind: optim.Cosine, Base: 1, Steps: 4}
	for _, c := range []struct {
		name string
		s    optim.Schedule
		step int
		want float64
	}{
		{"warm-up starts above zero", cos, 1, 1e-4},
		{"warm-up ends at base", cos, 10, 1e-3},
		{"cosine after a quarter", cos, 35, 0x1.c72f91e6fe093p-11},
		{"cosine half way", cos, 60, 5.5e-4},
		{"cosine after three quarters", cos, 85, 0x1.e61fb935bef2ap-13},
		{"cosine at the end", cos, 110, 1e-4},
		{"cosine after the end", cos, 1000, 1e-4},
		{"linear half way", lin, 60, 5.5e-4},
		{"linear at the end", lin, 110, 1e-4},
		{"constant", flat, 110, 1e-3},
		{"no warm-up", none, 2, 0.5},
		{"no floor", none, 4, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			// 4e-19 is about two units of the last place: room for the decimals above, none for another formula.
			if got := c.s.LR(c.step); math.Abs(got-c.want) > 4e-19 {
				t.Errorf("LR(%d) = %x = %v, want %x = %v", c.step, got, got, c.want, c.want)
			}
		})
	}
}

func TestScheduleFollowsTheCosine(t *testing.T) {
	const n = 1000
	s := optim.Schedule{Kind: optim.Cosine, Base: 1, Steps: n}
	for i := range n + 1 {
		if got, want := s.LR(i), (1+math.Cos(math.Pi*float64(i)/n))/2; i > 0 && math.Abs(got-want) > 3e-16 {
			t.Errorf("LR(%d) = %v, want %v", i, got, want)
		}
	}
}

func TestValidateReportsAllFaults(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct {
		name   string
		v      interface{ Validate() error }
		faults int
	}{
		{"default", optim.DefaultAdamW(), 0},
		{"adamw", optim.AdamW{Beta1: 1, Beta2: -0.1, Eps: 0, Decay: -1}, 4},
		{"adamw NaN", optim.AdamW{Beta1: nan, Beta2: nan, Eps: nan, Decay: nan}, 4},
		{"sgd", optim.SGD{Momentum: 0.9, Decay: 0.1}, 0},
		{"sgd", optim.SGD{Momentum: 1, Decay: nan}, 2},
		{"schedule", optim.Schedule{Kind: optim.Linear, Base: 1, Warmup: 3, Steps: 2, Floor: 1}, 0},
		{"schedule", optim.Schedule{Kind: "cosin", Base: math.Inf(1), Warmup: -1, Floor: 2}, 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.v.Validate()
			if got := strings.Count(fmt.Sprint(err), "optim: "); got != c.faults || (err != nil) != (c.faults > 0) {
				t.Errorf("%d faults, want %d: %v", got, c.faults, err)
			}
			if err != nil && !errors.Is(err, optim.ErrOptimizer) {
				t.Error("not an ErrOptimizer")
			}
		})
	}
}

// piece is a parameter of three elements with gradient, states and control.
func piece(o optim.Optimizer, decay bool, control ...float32) optim.Slice {
	x := optim.Slice{P: device.Host([]float32{1, -2, 0}), G: device.Host([]float32{0.5, 4, 0}), Control: device.Host(control), Decay: decay}
	for range o.States() {
		x.States = append(x.States, device.Host(make([]float32, 3)))
	}
	return x
}

func TestAdamWFollowsTheFormula(t *testing.T) {
	a := optim.DefaultAdamW()
	const lr, scale = 0.01, 0.5
	for _, decay := range []bool{false, true} {
		x := piece(a, decay, scale, 0)
		p, m, v := []float64{1, -2, 0}, make([]float64, 3), make([]float64, 3)
		for step := 1; step <= 20; step++ {
			if err := a.Update(nil, ref.New(), optim.Hyper{Step: step, LR: lr}, x); err != nil {
				t.Fatal(err)
			}
			for i, g := range x.G.Float32s() {
				g := float64(g) * scale
				m[i] = a.Beta1*m[i] + (1-a.Beta1)*g
				v[i] = a.Beta2*v[i] + (1-a.Beta2)*g*g
				d := 0.0
				if decay {
					d = a.Decay
				}
				mh, vh := m[i]/(1-math.Pow(a.Beta1, float64(step))), v[i]/(1-math.Pow(a.Beta2, float64(step)))
				p[i] -= lr * (d*p[i] + mh/(math.Sqrt(vh)+a.Eps))
			}
		}
		for i, got := range x.P.Float32s() {
			if math.Abs(float64(got)-p[i]) > 1e-6 {
				t.Errorf("decay=%t: element %d is %v, want %v", decay, i, got, p[i])
			}
		}
	}
	if err := a.Update(nil, ref.New(), optim.Hyper{}, piece(a, false, 1, 0)); !errors.Is(err, optim.ErrOptimizer) {
		t.Errorf("step 0: %v", err)
	}
}

func TestSGDFollowsTheFormula(t *testing.T) {
	const lr = 0.1
	for _, o := range []optim.SGD{{}, {Momentum: 0.9}, {Decay: 0.01}, {Momentum: 0.9, Decay: 0.01}} {
		x := piece(o, true, 1, 0)
		p, m := []float64{1, -2, 0}, make([]float64, 3)
		for step := 1; step <= 5; step++ {
			if err := o.Update(nil, ref.New(), optim.Hyper{Step: step, LR: lr}, x); err != nil {
				t.Fatal(err)
			}
			for i, g := range x.G.Float32s() {
				m[i] = o.Momentum*m[i] + float64(g) + o.Decay*p[i]
				p[i] -= lr * m[i]
			}
		}
		for i, got := range x.P.Float32s() {
			if math.Abs(float64(got)-p[i]) > 1e-6 {
				t.Errorf("%+v: element %d is %v, want %v", o, i, got, p[i])
			}
		}
	}
}

func TestSkipChangesNothing(t *testing.T) {
	for _, o := range []optim.Optimizer{optim.DefaultAdamW(), optim.SGD{Momentum: 0.9}} {
		x := piece(o, true, float32(math.NaN()), 1)
		if err := o.Update(nil, ref.New(), optim.Hyper{Step: 1, LR: 1}, x); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(x.P.Float32s(), x.States[0].Float32s()); got != "[1 -2 0] [0 0 0]" {
			t.Errorf("%s: %s", o.Name(), got)
		}
	}
}

func ExampleSchedule() {
	s := optim.Schedule{Kind: optim.Cosine, Base: 1e-3, Warmup: 2, Steps: 6, Floor: 0.1}
	for step := 1; step <= 6; step++ {
		fmt.Printf("%d %.6f\n", step, s.LR(step))
	}
	// Output:
	// 1 0.000500
	// 2 0.001000
	// 3 0.000868
	// 4 0.000550
	// 5 0.000232
	// 6 0.000100
}
