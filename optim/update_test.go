package optim_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"zeroshard/device"
	"zeroshard/kernels"
	kcpu "zeroshard/kernels/cpu"
	"zeroshard/kernels/ref"
	"zeroshard/optim"
	"zeroshard/prng"
)

var optimizers = []optim.Optimizer{optim.DefaultAdamW(), optim.AdamW{Eps: 1e-3}, optim.SGD{}, optim.SGD{Momentum: 0.9}, optim.SGD{Momentum: 0.9, Decay: 0.3}}

// backends are the arithmetic that optimizers run on.
func backends() map[string]kernels.Vector {
	return map[string]kernels.Vector{"ref": ref.New(), "cpu": kcpu.New(nil)}
}

// flat is a piece of memory: parameters, gradients, states.
type flat struct {
	p, g   []float32
	states [][]float32
}

func newFlat(o optim.Optimizer, n int) *flat {
	f := &flat{p: make([]float32, n), g: make([]float32, n)}
	key := prng.New(4)
	key.Named("p").FillNormal(f.p, 0)
	key.Named("g").FillNormal(f.g, 0)
	for range o.States() {
		f.states = append(f.states, make([]float32, n))
	}
	return f
}

// update runs steps on the pieces between cuts.
func (f *flat) update(t testing.TB, o optim.Optimizer, k kernels.Vector, decay bool, cuts ...int) {
	t.Helper()
	control := device.Host([]float32{0.25, 0})
	cuts = append(cuts, len(f.p))
	for step := 1; step <= 3; step++ {
		lo := 0
		for _, hi := range cuts {
			x := optim.Slice{P: device.Host(f.p[lo:hi]), G: device.Host(f.g[lo:hi]), Control: control, Decay: decay}
			for _, s := range f.states {
				x.States = append(x.States, device.Host(s[lo:hi]))
			}
			if err := o.Update(nil, k, optim.Hyper{Step: step, LR: 0.01}, x); err != nil {
				t.Fatal(err)
			}
			lo = hi
		}
	}
}

func (f *flat) equal(o *flat) bool {
	same := func(a, b []float32) bool {
		return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
	}
	return same(f.p, o.p) && same(f.g, o.g) && slices.EqualFunc(f.states, o.states, same)
}

// Optimizers are element-wise: wherever a shard begins, and on whichever arithmetic, the bits are those of the whole.
func TestUpdateIsElementWise(t *testing.T) {
	const n = 67
	for _, o := range optimizers {
		want := newFlat(o, n)
		want.update(t, o, ref.New(), true)
		for name, k := range backends() {
			for cut := range n + 1 {
				got := newFlat(o, n)
				got.update(t, o, k, true, cut)
				if !got.equal(want) {
					t.Fatalf("%+v on %s, cut at %d: other bits than the whole on ref", o, name, cut)
				}
			}
			singles := newFlat(o, n)
			var cuts []int
			for i := range n {
				cuts = append(cuts, i)
			}
			singles.update(t, o, k, true, cuts...)
			if !singles.equal(want) {
				t.Errorf("%+v on %s: element by element gives other bits", o, name)
			}
		}
	}
}

// FuzzUpdateIsElementWise cuts in three, with gradients of any bits.
func FuzzUpdateIsElementWise(f *testing.F) {
	f.Add(uint64(1), 20, 40, float32(1e-30))
	f.Add(uint64(2), 0, 33, float32(math.MaxFloat32))
	f.Add(uint64(3), 16, 16, float32(math.Inf(1)))
	f.Fuzz(func(t *testing.T, seed uint64, a, b int, special float32) {
		const n = 50
		a, b = min(max(a, 0), n), min(max(b, 0), n)
		if math.IsNaN(float64(special)) {
			special = 0 // a NaN's payload is not part of the promise
		}
		for _, o := range optimizers {
			make := func() *flat {
				x := newFlat(o, n)
				prng.New(seed).FillNormal(x.g, 0)
				x.g[int(seed%n)] = special
				return x
			}
			for name, k := range backends() {
				whole, cut := make(), make()
				whole.update(t, o, k, true)
				cut.update(t, o, k, true, min(a, b), max(a, b))
				if !sameNumbers(whole, cut) {
					t.Fatalf("%+v on %s, cut at %d and %d", o, name, a, b)
				}
			}
		}
	})
}

// sameNumbers is equal where any NaN is as good as another.
func sameNumbers(a, b *flat) bool {
	for _, f := range []*flat{a, b} {
		for _, list := range append([][]float32{f.p}, f.states...) {
			for i, v := range list {
				if v != v {
					list[i] = float32(math.NaN())
				}
			}
		}
	}
	return a.equal(b)
}

// Decay acts where Slice.Decay says, and only there.
func TestDecayOnlyWhereAsked(t *testing.T) {
	for _, pair := range []struct{ with, without optim.Optimizer }{
		{optim.DefaultAdamW(), optim.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8}},
		{optim.SGD{Momentum: 0.9, Decay: 0.1}, optim.SGD{Momentum: 0.9}},
		{optim.SGD{Decay: 0.1}, optim.SGD{}},
	} {
		plain, off, on := newFlat(pair.with, 40), newFlat(pair.with, 40), newFlat(pair.with, 40)
		plain.update(t, pair.without, ref.New(), true)
		off.update(t, pair.with, ref.New(), false)
		on.update(t, pair.with, ref.New(), true)
		if !off.equal(plain) {
			t.Errorf("%+v decays where it must not", pair.with)
		}
		if on.equal(plain) {
			t.Errorf("%+v decays nowhere", pair.with)
		}
	}
}

// Decay is decoupled in AdamW (without a gradient a weight shrinks by 1−LR·Decay and the moments stay zero), L2 in SGD.
func TestDecayWithoutGradient(t *testing.T) {
	for _, o := range []optim.Optimizer{optim.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, Decay: 0.5}, optim.SGD{Momentum: 0.9, Decay: 0.5}} {
		x := optim.Slice{P: device.Host([]float32{2}), G: device.Host([]float32{0}), Control: device.Host([]float32{1, 0}), Decay: true}
		for range o.States() {
			x.States = append(x.States, device.Host([]float32{0}))
		}
		if err := o.Update(nil, ref.New(), optim.Hyper{Step: 1, LR: 0.25}, x); err != nil {
			t.Fatal(err)
		}
		if got := x.P.Float32s()[0]; got != 1.75 {
			t.Errorf("%s: 2 became %v, want 1.75", o.Name(), got)
		}
		want := map[string]string{"adamw": "[0 0]", "sgd": "[1]"}[o.Name()]
		var moments []float32
		for _, s := range x.States {
			moments = append(moments, s.Float32s()...)
		}
		if fmt.Sprint(moments) != want {
			t.Errorf("%s: moments %v, want %s", o.Name(), moments, want)
		}
	}
}

// Bias correction counts updates, not steps: after skipped steps the first update is still the first.
func TestBiasCorrectionCountsUpdates(t *testing.T) {
	o := optim.DefaultAdamW()
	run := func(h optim.Hyper) []float32 {
		f := newFlat(o, 8)
		x := optim.Slice{P: device.Host(f.p), G: device.Host(f.g), Control: device.Host([]float32{1, 0}), Decay: true,
			States: []device.Buffer{device.Host(f.states[0]), device.Host(f.states[1])}}
		if err := o.Update(nil, ref.New(), h, x); err != nil {
			t.Fatal(err)
		}
		return f.p
	}
	first := run(optim.Hyper{Step: 1, LR: 0.1})
	if got := run(optim.Hyper{Step: 7, Update: 1, LR: 0.1}); !slices.Equal(got, first) {
		t.Error("the first update at step 7 is not the first update")
	}
	if got := run(optim.Hyper{Step: 7, LR: 0.1}); slices.Equal(got, first) {
		t.Error("the seventh update is the first one")
	}
	for _, h := range []optim.Hyper{{}, {Step: 1, Update: -1}, {Step: -3}} {
		if err := o.Update(nil, ref.New(), h, optim.Slice{}); !errors.Is(err, optim.ErrOptimizer) {
			t.Errorf("%+v: %v", h, err)
		}
	}
}
