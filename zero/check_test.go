package zero

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"zeroshard/models"
	"zeroshard/shard"
)

// sound compiles a plan with many waits.
func sound(t *testing.T) *Plan {
	t.Helper()
	m := chain(4)
	l, err := shard.NewLayout(m.Flats(), 0)
	if err != nil {
		t.Fatal(err)
	}
	mesh, err := shard.NewMesh(2, 2)
	if err != nil {
		t.Fatal(err)
	}
	p, err := Compile(l, m, Stages[len(Stages)-1], mesh, Options{Leaves: 8, Shape: models.Shape{Batch: 1, Seq: 4}, States: []string{"m", "v"}, Prefetch: 1, Recompute: 2})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Check(); err != nil {
		t.Fatal(err)
	}
	return p
}

// chain is a model of n units, each with a flat of its own, and a loss that shares the first one's.
type chain int

func (n chain) name(i int) string { return string(rune('a' + i%int(n))) }
func (n chain) Flats() (f []shard.FlatSpec) {
	for i := range int(n) {
		f = append(f, shard.FlatSpec{Name: n.name(i), Params: []shard.Param{{Name: n.name(i) + ".w", Shape: []int{300}}}})
	}
	return f
}
func (n chain) Units() (u []models.Unit) {
	for i := range int(n) + 1 {
		u = append(u, link(n.name(i)))
	}
	return u
}

type link string

func (l link) Name() string                        { return string(l) }
func (l link) Reads() (forward, backward []string) { return []string{string(l)}, []string{string(l)} }
func (l link) Sizes(models.Shape, models.Mode) models.Sizes {
	return models.Sizes{Out: 200, Saved: 500, Work: 100, BackWork: 300}
}
func (l link) Forward(*models.Call) error  { return nil }
func (l link) Backward(*models.Call) error { return nil }

// A wait that is left out is a race on some machine on some day. Every one of them is needed, and Check finds every one.
func TestCheckFindsEveryMissingWait(t *testing.T) {
	p := sound(t)
	waits := 0
	for i := range p.Ops {
		for k := range p.Ops[i].After {
			waits++
			whole := p.Ops[i].After
			p.Ops[i].After = slices.Delete(slices.Clone(whole), k, k+1)
			// The wait that throttles a prefetch is about memory in time, not about data: the places may allow its loss.
			throttle := p.Ops[i].Verb == Gather && p.Ops[i].Note == "" && p.Ops[whole[k]].Lane == Compute
			if err := p.Check(); !errors.Is(err, ErrPlan) && !throttle {
				t.Errorf("without its wait for %d, Check accepts: %s", whole[k], p.Line(i))
			}
			p.Ops[i].After = whole
		}
	}
	if waits < 20 {
		t.Fatalf("only %d waits: the plan is too simple for this test", waits)
	}
}

// shift renumbers waits after an op at i was inserted (+1) or deleted (-1).
func shift(p *Plan, i, by int) {
	for k := range p.Ops {
		var after []int
		for _, d := range p.Ops[k].After {
			switch {
			case d == i && by < 0:
				continue
			case d >= i:
				d += by
			}
			after = append(after, d)
		}
		p.Ops[k].After = after
	}
	p.lives()
}

// Every kind of fault that Check promises to find is planted once.
func TestCheckFinds(t *testing.T) {
	find := func(p *Plan, v Verb) int {
		return slices.IndexFunc(p.Ops, func(o Op) bool { return o.Verb == v })
	}
	drop := func(p *Plan, i int) {
		p.Ops = slices.Delete(p.Ops, i, i+1)
		shift(p, i, -1)
	}
	for _, c := range []struct {
		name, want string
		plant      func(p *Plan)
	}{
		{"a gather is missing", "outside gather and reshard", func(p *Plan) { drop(p, find(p, Gather)) }},
		{"a reshard is missing", "still gathered", func(p *Plan) { drop(p, find(p, Reshard)) }},
		{"a reshard comes twice", "not gathered", func(p *Plan) {
			i := find(p, Reshard)
			p.Ops = slices.Insert(p.Ops, i, p.Ops[i])
			shift(p, i, +1)
		}},
		{"a reduce is missing", "is reduced", func(p *Plan) { drop(p, find(p, Reduce)) }},
		{"an update is missing", "are updated", func(p *Plan) { drop(p, find(p, Update)) }},
		{"two places overlap", "takes bytes of", func(p *Plan) {
			i := find(p, Backward)
			p.Bufs[p.Ops[i].Args.Saved].Off = p.Bufs[p.Ops[i].Args.DOut].Off
		}},
		{"a place lies outside the arena", "outside the arena", func(p *Plan) { p.Bufs[p.Ops[find(p, Backward)].Args.DIn].Off = p.Transient }},
		{"a window is reduced twice", "a second time", func(p *Plan) {
			for i := range p.Ops {
				if p.Ops[i].Verb == Reduce && p.Ops[i].Axis == shard.Shards {
					p.Ops[i].Win = 0
				}
			}
		}},
		{"a gradient at rest is never written", "nothing has written", func(p *Plan) {
			for i := range p.Ops {
				if p.Ops[i].Verb == Reduce {
					p.Ops[i].Args.Outs = nil
				}
			}
		}},
		{"a gather goes nowhere", "its own part", func(p *Plan) {
			i := slices.IndexFunc(p.Ops, func(o Op) bool { return o.Verb == Gather && o.Note != "" })
			p.Ops[i].Args.Dst = p.Ops[i].Args.Src
		}},
		{"a wait points forward", "no earlier op", func(p *Plan) { p.Ops[2].After = []int{5} }},
		{"a wait points to its own lane", "no earlier op", func(p *Plan) { i := find(p, Backward); p.Ops[i].After = []int{find(p, Forward)} }},
		{"a collective names a leaf", "no leaf", func(p *Plan) { p.Ops[find(p, Gather)].Slot = 0 }},
		{"something is read before it is written", "nothing has written", func(p *Plan) { drop(p, find(p, Feed)) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := sound(t)
			c.plant(p)
			if err := p.Check(); !errors.Is(err, ErrPlan) || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("Check says %v, want %q", err, c.want)
			}
		})
	}
}
