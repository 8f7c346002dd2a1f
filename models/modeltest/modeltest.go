package modeltest

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"zeroshard/kernels"
	"zeroshard/models"
	"zeroshard/prng"
	"zeroshard/shard"
)

// Run holds a model to the contract of package models, with leaves of shape s whose tokens and targets are under vocab. Keep
// the model and the shape small: gradients are compared with finite differences of the loss.
func Run(t *testing.T, net kernels.Net, m models.Model, s models.Shape, vocab int) {
	x := suite{func() *Leaf { return NewLeaf(net, m, s, vocab) }}
	for _, c := range x.cases() {
		t.Run(c.name, func(t *testing.T) { c.test(t) })
	}
}

type suite struct{ leaf func() *Leaf }

type testCase struct {
	name string
	test func(t testing.TB)
}

func (x suite) cases() []testCase {
	return []testCase{
		{"structure", x.structure},
		{"sizes", x.sizes},
		{"deterministic", x.deterministic},
		{"recompute", x.recompute},
		{"gradients", x.gradients},
		{"add", x.add},
		{"scale", x.scale},
		{"targets", x.targets},
		{"frozen", x.frozen},
		{"logits", x.logits},
		{"decode", func(t testing.TB) { Decode(t, x.leaf()) }},
		{"initial", x.initial},
	}
}

func (x suite) train(t testing.TB, change func(*Leaf)) *Result {
	t.Helper()
	l := x.leaf()
	if change != nil {
		change(l)
	}
	r, err := l.Train()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (x suite) eval(t testing.TB, change func(*Leaf)) *Result {
	t.Helper()
	l := x.leaf()
	if change != nil {
		change(l)
	}
	r, err := l.Eval()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// structure: names are unique, units read flats that exist, and every flat is read.
func (x suite) structure(t testing.TB) {
	m := x.leaf().Model
	flats, params, units := map[string]bool{}, map[string]bool{}, map[string]bool{}
	once := func(seen map[string]bool, what, name string) {
		if seen[name] || name == "" {
			t.Errorf("%s %q: name is empty or used twice", what, name)
		}
		seen[name] = true
	}
	for _, f := range m.Flats() {
		once(flats, "flat", f.Name)
		for _, p := range f.Params {
			once(params, "parameter", p.Name)
		}
	}
	if len(m.Units()) == 0 {
		t.Fatal("the model has no units")
	}
	unread := maps.Clone(flats)
	for _, u := range m.Units() {
		once(units, "unit", u.Name())
		forward, backward := u.Reads()
		for _, f := range forward {
			if !flats[f] {
				t.Errorf("unit %s reads %q, which is no flat", u.Name(), f)
			}
			delete(unread, f)
		}
		for _, f := range backward {
			if !slices.Contains(forward, f) {
				t.Errorf("unit %s reads %q in backward and not in forward", u.Name(), f)
			}
		}
	}
	for f := range unread {
		t.Errorf("no unit reads flat %q", f)
	}
}

// sizes: the same every time, and all that is asked for in training is used.
func (x suite) sizes(t testing.TB) {
	l := x.leaf()
	for _, u := range l.Model.Units() {
		for _, mode := range []models.Mode{models.Train, models.Eval, models.Logits, models.Decode} {
			a, b := u.Sizes(l.Shape, mode), u.Sizes(l.Shape, mode)
			if a != b || min(a.Out, a.Saved, a.Work, a.BackWork, a.Cache) < 0 || a.Flops < 0 {
				t.Errorf("%s, %s: sizes %+v, then %+v", u.Name(), mode, a, b)
			}
		}
	}
	r := l.begin(models.Train)
	if err := r.forward(); err != nil {
		t.Fatal(err)
	}
	if err := r.backward(); err != nil {
		t.Fatal(err)
	}
	for _, w := range r.waste {
		t.Error(w)
	}
}

// deterministic: the same bits again, over other garbage.
func (x suite) deterministic(t testing.TB) {
	same(t, x.train(t, nil), x.train(t, func(l *Leaf) { l.Garbage = math.Float32bits(-3e30) }))
}

// recompute: a Forward without Out leaves the same Saved, and nothing else changes. The runner compares Saved.
func (x suite) recompute(t testing.TB) {
	same(t, x.train(t, nil), x.train(t, func(l *Leaf) { l.Recompute = true }))
}

// add: on zeros, adding gives what writing gives; on other values it adds.
func (x suite) add(t testing.TB) {
	want := x.train(t, nil)
	same(t, want, x.train(t, func(l *Leaf) { l.Add = true }))
	got := x.train(t, func(l *Leaf) { l.Add, l.Prefill = true, 2 })
	for name, g := range want.Grads {
		for i := range g {
			sum := float64(g[i]) + 2
			if !(math.Abs(float64(got.Grads[name][i])-sum) <= 1e-5*max(1, math.Abs(sum))) {
				t.Fatalf("%s[%d]: added to 2: %v, want %v", name, i, got.Grads[name][i], sum)
			}
		}
	}
}

// scale: a power of two scales the gradient exactly and leaves the loss.
func (x suite) scale(t testing.TB) {
	want, got := x.train(t, nil), x.train(t, func(l *Leaf) { l.Scale = 0.25 })
	for _, g := range want.Grads {
		for i := range g {
			g[i] *= 0.25
		}
	}
	same(t, want, got)
}

// targets: those under 0 do not count; with none left, loss and gradients are zero.
func (x suite) targets(t testing.TB) {
	all := x.leaf().Shape.Rows()
	if r := x.train(t, nil); r.Valid != all {
		t.Errorf("%d valid targets, want %d", r.Valid, all)
	}
	if r := x.train(t, func(l *Leaf) { l.Targets[0] = -1 }); r.Valid != all-1 {
		t.Errorf("%d valid targets with one ignored, want %d", r.Valid, all-1)
	}
	none := x.train(t, func(l *Leaf) {
		for i := range l.Targets {
			l.Targets[i] = -1
		}
	})
	if none.Valid != 0 || none.Loss != 0 {
		t.Errorf("loss %v over %d targets where all are ignored", none.Loss, none.Valid)
	}
	for name, g := range none.Grads {
		if i := slices.IndexFunc(g, func(v float32) bool { return v != 0 }); i >= 0 {
			t.Errorf("%s[%d]: gradient %v where all targets are ignored", name, i, g[i])
		}
	}
}

// frozen: parameters without a gradient change no other gradient.
func (x suite) frozen(t testing.TB) {
	want := x.train(t, nil)
	for parity := range 3 {
		got := x.train(t, func(l *Leaf) { l.Model = freeze(l.Model, parity) })
		for name, g := range got.Grads {
			if at := firstDifference(g, want.Grads[name]); at >= 0 {
				t.Errorf("%s[%d]: %v with others frozen, %v without", name, at, g[at], want.Grads[name][at])
			}
		}
	}
}

// frozenModel is a model with some parameters frozen.
type frozenModel struct {
	models.Model
	flats []shard.FlatSpec
}

func (m frozenModel) Flats() []shard.FlatSpec { return m.flats }

// freeze freezes parameters 0, 2, 4, … or 1, 3, 5, …, or all where parity is 2.
func freeze(m models.Model, parity int) models.Model {
	f, n := frozenModel{Model: m}, 0
	for _, spec := range m.Flats() {
		spec.Params = slices.Clone(spec.Params)
		for i := range spec.Params {
			spec.Params[i].Frozen = parity == 2 || n%2 == parity
			n++
		}
		f.flats = append(f.flats, spec)
	}
	return f
}

// logits: where the last unit gives them, one row a sequence, Eval's loss follows from them.
func (x suite) logits(t testing.TB) {
	same(t, x.eval(t, nil), x.eval(t, func(l *Leaf) { l.Garbage = math.Float32bits(-3e30) }))
	l := x.leaf()
	units := l.Model.Units()
	out := units[len(units)-1].Sizes(l.Shape, models.Logits).Out
	if out == 0 {
		t.Skip("the last unit gives no logits")
	}
	for _, at := range []int{0, l.Shape.Seq - 1} {
		l := x.leaf()
		for i := range l.Targets {
			if i%l.Shape.Seq != at {
				l.Targets[i] = -1
			}
		}
		logits, err := l.Logits()
		if err != nil {
			t.Fatal(err)
		}
		r, err := l.Eval()
		if err != nil {
			t.Fatal(err)
		}
		want, width := 0.0, out/l.Shape.Batch
		for b := range l.Shape.Batch {
			want += crossEntropy(logits[b*width:(b+1)*width], l.Targets[b*l.Shape.Seq+at])
		}
		if math.Abs(r.Loss-want) > 1e-5*max(1, want) || r.Valid != l.Shape.Batch {
			t.Errorf("position %d: loss %v of %d, from logits %v of %d", at, r.Loss, r.Valid, want, l.Shape.Batch)
		}
	}
}

func crossEntropy(logits []float32, target int32) float64 {
	sum := 0.0
	for _, v := range logits {
		sum += math.Exp(float64(v))
	}
	return math.Log(sum) - float64(logits[target])
}

// initial: slices of initial values are those of the whole, and follow from the key alone.
func (x suite) initial(t testing.TB) {
	m, ok := x.leaf().Model.(models.Initializer)
	if !ok {
		t.Skip("the model gives no initial values")
	}
	fill := func(seed uint64, p shard.Param, lo, hi int) []float32 {
		v := slices.Repeat([]float32{float32(math.NaN())}, hi-lo)
		m.Init(prng.New(seed), p, lo, v)
		return v
	}
	differ := false
	for _, f := range x.leaf().Model.Flats() {
		for _, p := range f.Params {
			whole := fill(1, p, 0, p.Len())
			for _, cut := range []int{0, 1, 7, p.Len() / 2} {
				cut = min(cut, p.Len())
				parts := append(fill(1, p, 0, cut), fill(1, p, cut, p.Len())...)
				if at := firstDifference(parts, whole); at >= 0 {
					t.Errorf("%s[%d]: %v in parts cut at %d, %v as a whole", p.Name, at, parts[at], cut, whole[at])
				}
			}
			if i := slices.IndexFunc(whole, func(v float32) bool { return math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) }); i >= 0 {
				t.Errorf("%s[%d]: initial value %v", p.Name, i, whole[i])
			}
			differ = differ || firstDifference(whole, fill(2, p, 0, p.Len())) >= 0
		}
	}
	if !differ {
		t.Error("initial values do not depend on the key")
	}
}

// same demands equal losses and gradients, bit for bit but for the sign of zero.
func same(t testing.TB, want, got *Result) {
	t.Helper()
	if want.Loss != got.Loss || want.Valid != got.Valid {
		t.Errorf("loss %v of %d, want %v of %d", got.Loss, got.Valid, want.Loss, want.Valid)
	}
	for name, g := range want.Grads {
		for i := range g {
			if g[i] != got.Grads[name][i] {
				t.Errorf("%s[%d]: gradient %v, want %v", name, i, got.Grads[name][i], g[i])
				break
			}
		}
	}
	if fmt.Sprint(slices.Sorted(maps.Keys(want.Grads))) != fmt.Sprint(slices.Sorted(maps.Keys(got.Grads))) {
		t.Errorf("gradients of other parameters")
	}
}
