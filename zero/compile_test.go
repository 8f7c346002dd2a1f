package zero_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"zeroshard/models"
	"zeroshard/prng"
	"zeroshard/shard"
	"zeroshard/zero"
)

// random draws a model and options from a key: chains with tied, shared, frozen, empty and odd-sized flats.
func random(k prng.Key) (models.Model, zero.Options, [4]int) {
	next := uint64(0)
	draw := func(n int) int { next++; return k.Intn(next, n) }
	p := &paper{}
	flats := 1 + draw(5)
	for f := range flats {
		spec := shard.FlatSpec{Name: fmt.Sprintf("f%d", f)}
		for i := range 1 + draw(3) {
			spec.Params = append(spec.Params, shard.Param{Name: fmt.Sprintf("f%d.%d", f, i), Shape: []int{draw(40), draw(40)}, Frozen: draw(6) == 0})
		}
		p.specs = append(p.specs, spec)
	}
	for u := range flats + draw(4) {
		name := p.specs[u%flats].Name
		unit := &paperUnit{name: fmt.Sprintf("u%d", u), forward: []string{name}, backward: []string{name},
			sizes: models.Sizes{Out: 1 + draw(50), Saved: draw(2) * draw(300), Work: draw(100), BackWork: draw(100)}}
		if other := p.specs[draw(flats)].Name; other != name && draw(3) == 0 {
			unit.forward = append(unit.forward, other)
		}
		if draw(4) == 0 {
			unit.backward = nil
		}
		p.units = append(p.units, unit)
	}
	replicas, shards := 1+draw(2), 1+draw(5)
	leaves := shards + draw(9)
	if replicas > 1 {
		leaves = replicas << draw(4)
	}
	o := zero.Options{Leaves: leaves, Shape: models.Shape{Batch: 1, Seq: 3}, States: []string{"m", "v"}[:draw(3)], Prefetch: draw(4),
		Recompute: draw(4), KeepLast: draw(2) == 0, Mode: models.Mode(draw(3))}
	if draw(4) == 0 {
		o.Precision = zero.BF16
	}
	return p, o, [4]int{draw(4), replicas, shards, draw(2) * 500}
}

// Every plan that Compile returns is sound, for any model and any options.
func FuzzCompileIsSound(f *testing.F) {
	for seed := range uint64(300) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		m, o, c := random(prng.New(seed))
		s, err := zero.Stage(c[0])
		if err != nil {
			t.Fatal(err)
		}
		tiers := []string{"", zero.HostTier, zero.FileTier}
		if c[0] > 0 {
			s = s.Offload(tiers[seed%3], "")
		}
		if c[0] == 3 {
			s = s.Offload(tiers[seed%3], tiers[seed/3%3])
			o.SubGroup = int(seed % 5 * 100)
			if seed%3 != 0 {
				s = s.Partly(float64(seed%11) / 10)
			}
		}
		l, err := shard.NewLayout(m.Flats(), c[3])
		if err != nil {
			t.Fatal(err)
		}
		mesh, err := shard.NewMesh(c[1], c[2])
		if err != nil {
			t.Fatal(err)
		}
		p, err := zero.Compile(l, m, s, mesh, o)
		if errors.Is(err, shard.ErrWorld) {
			return // fewer leaves than ranks: refused
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Check(); err != nil {
			t.Fatalf("%v\n%s\n%s", err, p.Text(), p.Buffers())
		}
		if cost := p.Cost(); cost.Hole < 0 || cost.Peak() < cost.Live.Sum() {
			t.Fatalf("live bytes pass the arena: %+v", cost)
		}
	})
}

// Options that may not change the schedule of communication leave the comm lane alone: recompute changes nothing there, prefetch
// changes the place of gathers but not their number or order.
func TestCommLane(t *testing.T) {
	lane := func(o zero.Options, verb func(zero.Verb) bool) (out []string) {
		o.Shape, o.Leaves, o.States = twoLeaves, 4, []string{"m", "v"}
		p := compile(t, newPaper(4, 24), 3, 1, 2, o)
		for i := range p.Ops {
			if op := &p.Ops[i]; op.Lane == zero.Comm && verb(op.Verb) {
				out = append(out, fmt.Sprint(op.Verb, op.Flat, op.Win, op.Note))
			}
		}
		return out
	}
	all := func(zero.Verb) bool { return true }
	gathers := func(v zero.Verb) bool { return v == zero.Gather }
	base := lane(zero.Options{Prefetch: 1}, all)
	for _, n := range []int{1, 2, 3} {
		if got := lane(zero.Options{Prefetch: 1, Recompute: n}, all); fmt.Sprint(got) != fmt.Sprint(base) {
			t.Errorf("recompute %d changes the comm lane:\n%v\n%v", n, got, base)
		}
	}
	base = lane(zero.Options{}, gathers)
	for _, n := range []int{1, 2, 5} {
		if got := lane(zero.Options{Prefetch: n}, gathers); fmt.Sprint(got) != fmt.Sprint(base) {
			t.Errorf("prefetch %d changes the gathers:\n%v\n%v", n, got, base)
		}
	}
}

// Traffic is the paper's, in padded elements: (windows+1)Ψ(N−1)/N at stages 0 and 1, (A+1) at 2, 3A at 3.
func TestTraffic(t *testing.T) {
	for _, c := range []struct{ stage, window, sends, publishes int }{
		{0, 0, 1, 1}, {0, 1, 4, 1}, {0, 2, 2, 1}, {1, 0, 1, 1}, {1, 1, 4, 1}, {2, 0, 4, 1}, {3, 0, 4, 8},
	} {
		t.Run(fmt.Sprintf("stage%d window%d", c.stage, c.window), func(t *testing.T) {
			const ranks, accumulate = 2, 4
			m := newPaper(3, 24)
			p := compile(t, m, c.stage, 1, ranks, zero.Options{Leaves: ranks * accumulate, Shape: twoLeaves, States: []string{"m", "v"}, Window: c.window})
			l, err := shard.NewLayout(m.Flats(), 0)
			if err != nil {
				t.Fatal(err)
			}
			mesh, err := shard.NewMesh(1, ranks)
			if err != nil {
				t.Fatal(err)
			}
			psi := 0
			for f := range l.Flats {
				psi += l.FullLen(f, mesh)
			}
			w := p.Wire(0)
			unit := int64(psi) * 4 * (ranks - 1) / ranks
			if w.ReduceScatter != int64(c.sends)*unit || w.AllGather != int64(c.publishes)*unit {
				t.Errorf("sends %+v, want %d and %d times %d", w, c.sends, c.publishes, unit)
			}
		})
	}
}

// Model state at rest is ZeRO's formula on the padded sizes.
func TestModelState(t *testing.T) {
	const n = 4
	m := newPaper(3, 24)
	l, err := shard.NewLayout(m.Flats(), 0)
	if err != nil {
		t.Fatal(err)
	}
	mesh, err := shard.NewMesh(1, n)
	if err != nil {
		t.Fatal(err)
	}
	var psi int64
	for f := range l.Flats {
		psi += int64(l.FullLen(f, mesh))
	}
	for _, c := range []struct {
		stage     int
		precision zero.Precision
		want      int64
	}{
		{0, zero.FP32, 16 * psi}, {1, zero.FP32, 8*psi + 8*psi/n}, {2, zero.FP32, 4*psi + 12*psi/n}, {3, zero.FP32, 16 * psi / n},
		{0, zero.BF16, 16 * psi}, {1, zero.BF16, 4*psi + 12*psi/n}, {2, zero.BF16, 2*psi + 14*psi/n}, {3, zero.BF16, 16 * psi / n},
	} {
		p := compile(t, m, c.stage, 1, n, zero.Options{Leaves: n, Shape: twoLeaves, States: []string{"m", "v"}, Precision: c.precision})
		if got := p.Cost().ModelState; got != c.want {
			t.Errorf("stage %d, %v: %d bytes of model state, the formula says %d", c.stage, c.precision, got, c.want)
		}
	}
}

// A model that breaks the contract between units and flats is refused when it is compiled, not met as a panic in a step.
func TestBrokenModels(t *testing.T) {
	for _, c := range []struct {
		name  string
		wreck func(m *paper)
		want  string
	}{
		{"a unit reads what no flat is", func(m *paper) { m.units[1].(*paperUnit).forward = []string{"nope"} }, `reads flat "nope", which the model does not have`},
		{"no flats at all", func(m *paper) { m.specs = nil }, "which the model does not have"},
		{"a nil unit", func(m *paper) { m.units[1] = nil }, "unit 1 of the model is nil"},
		{"no units", func(m *paper) { m.units = nil }, "no units"},
		{"backward reads more than forward", func(m *paper) { m.units[1].(*paperUnit).backward = []string{"root"} }, "in backward but not in forward"},
		{"a parameter that nobody reads", func(m *paper) { m.units = append(m.units[:1], m.units[2:]...) }, "no unit reads"},
		{"a unit in the middle without output", func(m *paper) { m.units[1].(*paperUnit).sizes.Out = 0 }, "has no output"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := newPaper(2, 24)
			c.wreck(m)
			l, err := shard.NewLayout(m.Flats(), 0)
			if err != nil {
				t.Fatal(err)
			}
			mesh, err := shard.NewMesh(1, 2)
			if err != nil {
				t.Fatal(err)
			}
			_, err = zero.Compile(l, m, zero.Stages[3], mesh, zero.Options{Leaves: 4, Shape: twoLeaves})
			if !errors.Is(err, zero.ErrOptions) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Compile says %v, want %q", err, c.want)
			}
		})
	}
}

// What cannot be planned is refused with a reason, never replaced.
func TestRefusals(t *testing.T) {
	m := newPaper(2, 24)
	l, err := shard.NewLayout(m.Flats(), 0)
	if err != nil {
		t.Fatal(err)
	}
	ok := zero.Options{Leaves: 8, Shape: twoLeaves}
	for _, c := range []struct {
		name             string
		strategy         zero.Strategy
		replicas, shards int
		change           func(*zero.Options)
		want             error
	}{
		{"sharded parameters with whole gradients", zero.Strategy{Param: zero.Rest{Over: shard.Shards}}, 1, 2, nil, zero.ErrStrategy},
		{"an unknown axis", zero.Strategy{Optim: zero.Rest{Over: "tensor"}}, 1, 2, nil, zero.ErrStrategy},
		{"a tier for what is not sharded", zero.Strategy{Optim: zero.Rest{Tier: "host"}}, 1, 2, nil, zero.ErrStrategy},
		{"an unknown tier", zero.Stages[3].Offload("tape", ""), 1, 2, nil, zero.ErrStrategy},
		{"a ratio of nothing", zero.Stages[3].Partly(0.5), 1, 2, nil, zero.ErrStrategy},
		{"a ratio at stage 2", zero.Stages[2].Offload(zero.HostTier, "").Partly(0.5), 1, 2, nil, zero.ErrStrategy},
		{"a ratio of more than all", zero.Stages[3].Offload(zero.HostTier, "").Partly(1.5), 1, 2, nil, zero.ErrStrategy},
		{"no leaves", zero.Stages[0], 1, 2, func(o *zero.Options) { o.Leaves = 0 }, zero.ErrOptions},
		{"no tokens", zero.Stages[0], 1, 2, func(o *zero.Options) { o.Shape.Seq = 0 }, zero.ErrOptions},
		{"negative prefetch", zero.Stages[0], 1, 2, func(o *zero.Options) { o.Prefetch = -1 }, zero.ErrOptions},
		{"negative recompute", zero.Stages[0], 1, 2, func(o *zero.Options) { o.Recompute = -1 }, zero.ErrOptions},
		{"half a precision", zero.Stages[0], 1, 2, func(o *zero.Options) { o.Precision = zero.BF16; o.Precision.Reduce = zero.FP32.Reduce }, zero.ErrOptions},
		{"more ranks than leaves", zero.Stages[3], 1, 9, nil, zero.ErrOptions},
		{"a window that is no power of two", zero.Stages[0], 1, 2, func(o *zero.Options) { o.Window = 3 }, zero.ErrOptions},
		{"replicas whose leaves are no power of two", zero.Stages[3], 2, 2, func(o *zero.Options) { o.Leaves = 12 }, zero.ErrOptions},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := ok
			if c.change != nil {
				c.change(&o)
			}
			mesh, err := shard.NewMesh(c.replicas, c.shards)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := zero.Compile(l, m, c.strategy, mesh, o); !errors.Is(err, c.want) {
				t.Errorf("Compile says %v, want %v", err, c.want)
			}
		})
	}
}
