package zero

import (
	"crypto/sha256"
	"encoding/hex"

	"zeroshard/memory"
	"zeroshard/models"
	"zeroshard/shard"
)

// Program is the plans of one engine: training steps, evaluation and logits over one set of resident places. The transient arena is
// as large as the largest of them.
type Program struct {
	Layout              *shard.Layout
	Train, Eval, Logits *Plan
	Chunk               int   // elements that a rank sends at a time when state is read
	Transient           int64 // bytes of the shared transient arena
	Scratch, Workspace  int64
}

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
	if pr.Train, err = compile(models.Train, o.Leaves, o.Shape); err != nil {
		return nil, err
	}
	if pr.Eval, err = compile(models.Eval, max(o.EvalLeaves, 1), o.Shape); err != nil {
		return nil, err
	}
	if pr.Logits, err = compile(models.Logits, 1, models.Shape{Batch: 1, Seq: o.Shape.Seq}); err != nil {
		return nil, err
	}
	for i := range pr.Train.model.flats {
		pr.Chunk = max(pr.Chunk, min(pr.Train.model.flats[i].shardLen, snapshotChunk))
	}
	pr.Transient = int64(pr.Chunk) * 4 * int64(mesh.Size(shard.Shards))
	for _, p := range pr.Plans() {
		c := p.Cost()
		pr.Transient = max(pr.Transient, p.Transient)
		pr.Scratch, pr.Workspace = max(pr.Scratch, c.Scratch), max(pr.Workspace, c.Workspace)
	}
	return pr, nil
}

// Plans lists the plans.
func (pr *Program) Plans() []*Plan { return []*Plan{pr.Train, pr.Eval, pr.Logits} }

// Cost is the cost of a training step in the arenas of the program.
func (pr *Program) Cost() Cost {
	c := pr.Train.Cost()
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
