package zero

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"

	"zeroshard/memory"
	"zeroshard/models"
	"zeroshard/shard"
)

// Program is the plans of one engine: training steps, evaluation and logits over one set of resident places. The transient arena is
// as large as the largest of them.
type Program struct {
	Layout             *shard.Layout
	Train              *Plan // nil in an engine for inference
	Eval               *Plan
	Logits             *Plan // of a whole text; where the model is a models.Decoder, of the next few rows of texts
	Next               *Plan // where the model is a models.Decoder, of one more row of each text
	Chunk              int   // elements that a rank sends at a time when state is read
	Transient          int64 // bytes of the shared transient arena
	Scratch, Workspace int64
}

// nextRows is the rows that a call adds to texts, of all of them together, where they have many to add: enough for products to run at
// speed, few enough for a short prompt to cost little.
const nextRows = 64

// snapshotChunk bounds the staging that reading state takes: 64 Ki elements a rank.
const snapshotChunk = 64 << 10

// CompileAll compiles the plans of an engine. o.Mode is ignored.
func CompileAll(l *shard.Layout, m models.Model, s Strategy, mesh shard.Mesh, o Options) (*Program, error) {
	compile := func(mode models.Mode, leaves int, shape models.Shape) (*Plan, error) {
		o := o
		o.Mode, o.Leaves, o.Shape = mode, leaves, shape
		return Compile(l, m, s, mesh, o)
	}
	pr := &Program{Layout: l}
	var err error
	if !o.Inference {
		if pr.Train, err = compile(models.Train, o.Leaves, o.Shape); err != nil {
			return nil, err
		}
	}
	if pr.Eval, err = compile(models.Eval, max(o.EvalLeaves, 1), o.Shape); err != nil {
		return nil, err
	}
	if d, ok := m.(models.Decoder); ok {
		next := models.Shape{Batch: max(o.Texts, 1), Seq: 1, Room: min(o.Shape.Seq, d.Positions())}
		if pr.Next, err = compile(models.Decode, 1, next); err != nil {
			return nil, err
		}
		next.Seq = max(1, min(next.Room, nextRows/next.Batch))
		pr.Logits, err = compile(models.Decode, 1, next)
	} else {
		pr.Logits, err = compile(models.Logits, 1, models.Shape{Batch: 1, Seq: o.Shape.Seq})
	}
	if err != nil {
		return nil, err
	}
	for i := range pr.Eval.model.flats {
		pr.Chunk = max(pr.Chunk, min(pr.Eval.model.flats[i].shardLen, snapshotChunk))
	}
	pr.Transient = int64(pr.Chunk) * 4 * int64(mesh.Size(shard.Shards))
	for _, p := range pr.Plans() {
		c := p.Cost()
		pr.Transient = max(pr.Transient, p.Transient)
		pr.Scratch, pr.Workspace = max(pr.Scratch, c.Scratch), max(pr.Workspace, c.Workspace)
	}
	return pr, nil
}

// Plans lists the plans that there are.
func (pr *Program) Plans() []*Plan {
	return slices.DeleteFunc([]*Plan{pr.Train, pr.Eval, pr.Logits, pr.Next}, func(p *Plan) bool { return p == nil })
}

// first is the plan of training, or where there is none that of evaluation. All have the same resident places.
func (pr *Program) first() *Plan { return pr.Plans()[0] }

// Mesh is how the ranks are arranged.
func (pr *Program) Mesh() shard.Mesh { return pr.first().Mesh }

// sameCaches says that the plans which continue texts keep the same things at the same places.
func (pr *Program) sameCaches() error {
	if pr.Next == nil {
		return nil
	}
	caches := func(p *Plan) (at []string) {
		for _, b := range p.Bufs {
			if b.Keep {
				at = append(at, fmt.Sprintf("%s +%d %d×%v", b.Name, b.Off, b.Len, b.DType))
			}
		}
		return at
	}
	if a, b := caches(pr.Logits), caches(pr.Next); !slices.Equal(a, b) {
		return fmt.Errorf("%w: one plan keeps %v, the other %v", ErrPlan, a, b)
	}
	return nil
}

// Cost is the cost of the first plan, that of a training step, in the arenas of the program.
func (pr *Program) Cost() Cost {
	c := pr.first().Cost()
	train := c.Live.Sum()
	for _, p := range pr.Plans()[1:] {
		if o := p.Cost(); o.Live.Sum() > train {
			train, c.Live, c.PeakOp = o.Live.Sum(), o.Live, none
		}
	}
	c.Transient, c.Scratch, c.Workspace = pr.Transient, pr.Scratch, pr.Workspace
	c.Hole = c.Peak() - c.Live.Sum()
	return c
}

// ByKind is the peak by kind for people and files: bytes by name, with the hole.
func (c Cost) ByKind() map[string]int64 {
	out := map[string]int64{"hole": c.Hole}
	for k, n := range c.Live {
		if n > 0 {
			out[memory.Kind(k).String()] = n
		}
	}
	return out
}

// SHA256 identifies the program.
func (pr *Program) SHA256() string {
	h := sha256.New()
	for _, p := range pr.Plans() {
		h.Write([]byte(p.SHA256()))
	}
	return hex.EncodeToString(h.Sum(nil))
}
