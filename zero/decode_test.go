package zero

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"zeroshard/memory"
	"zeroshard/models"
	"zeroshard/shard"
)

// teller is chain with caches.
type teller struct{ chain }

func (teller) Positions() int { return 9 }

func (m teller) Units() (u []models.Unit) {
	for _, x := range m.chain.Units() {
		u = append(u, keeper{x.(link)})
	}
	return u
}

type keeper struct{ link }

func (k keeper) Sizes(s models.Shape, m models.Mode) models.Sizes {
	z := k.link.Sizes(s, m)
	if z.Saved *= s.Seq; m == models.Decode {
		z.Cache = s.Batch * s.Room * 10
	}
	return z
}

// told compiles the program of a teller.
func told(t *testing.T, o Options) *Program {
	t.Helper()
	m := teller{4}
	l, err := shard.NewLayout(m.Flats(), 0)
	if err != nil {
		t.Fatal(err)
	}
	mesh, err := shard.NewMesh(1, 2)
	if err != nil {
		t.Fatal(err)
	}
	o.Shape, o.Leaves, o.States = models.Shape{Batch: 2, Seq: 8}, 2, []string{"m", "v"}
	pr, err := CompileAll(l, m, Stages[3], mesh, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := pr.runnable(); err != nil {
		t.Fatal(err)
	}
	return pr
}

// What lies still from run to run lies at the same places in both plans, and nothing else comes near it.
func TestCachesLieStill(t *testing.T) {
	pr := told(t, Options{Texts: 3})
	if got := pr.Next.Options.Shape; got != (models.Shape{Batch: 3, Seq: 1, Room: 8}) {
		t.Errorf("one row at a time has shape %+v", got)
	}
	if got := pr.Logits.Options.Shape; got != (models.Shape{Batch: 3, Seq: 8, Room: 8}) {
		t.Errorf("many rows at a time have shape %+v", got)
	}
	if live := pr.Next.Cost().Live[memory.Cache]; live != 5*3*8*10*4 {
		t.Errorf("%d bytes of caches", live)
	}
	cache := func(p *Plan) *Buf { return &p.Bufs[slices.IndexFunc(p.Bufs, func(b Buf) bool { return b.Keep })] }
	for name, plant := range map[string]func() error{
		"share bytes": func() error {
			p := told(t, Options{}).Next
			i := slices.IndexFunc(p.Ops, func(o Op) bool { return o.Verb == Forward && o.Unit == len(p.model.units)-1 })
			p.Bufs[p.Ops[i].Args.Out].Off = cache(p).Off // after the last use of that cache
			return p.Check()
		},
		"lives for a part": func() error {
			p := told(t, Options{}).Next
			cache(p).Last--
			return p.Check()
		},
		"one plan keeps": func() error {
			pr := told(t, Options{})
			cache(pr.Next).Off += align
			return pr.sameCaches()
		},
	} {
		if err := plant(); !errors.Is(err, ErrPlan) || !strings.Contains(err.Error(), name) {
			t.Errorf("planted %q: %v", name, err)
		}
	}
}

// An engine for inference holds parameters and nothing else.
func TestInferenceHoldsParametersAlone(t *testing.T) {
	train, infer := told(t, Options{}), told(t, Options{Inference: true})
	if infer.Train != nil || len(infer.Plans()) != 3 {
		t.Fatalf("%d plans, training %v", len(infer.Plans()), infer.Train != nil)
	}
	for _, b := range infer.Eval.Bufs {
		if b.Resident && b.Kind != memory.Parameter {
			t.Errorf("%s rests there", b.Name)
		}
	}
	if a, b := infer.Cost().ModelState, train.Cost().ModelState; 4*a != b {
		t.Errorf("%d bytes of state for inference, %d for training: want a quarter", a, b)
	}
	if _, err := Compile(infer.Layout, teller{4}, Stages[0], infer.Mesh(), Options{Leaves: 2, Shape: models.Shape{Batch: 1, Seq: 1}, Inference: true}); !errors.Is(err, ErrOptions) {
		t.Errorf("a training plan for inference: %v", err)
	}
}
