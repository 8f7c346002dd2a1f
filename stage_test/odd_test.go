package stagetest

import (
	"fmt"

	"zeroshard"
	"zeroshard/kernels"
	"zeroshard/models"
	"zeroshard/optim"
	"zeroshard/prng"
	"zeroshard/shard"
)

// odd is a model of what GPTs do not have: sizes that divide nothing, parameters without elements at the end of a flat and alone
// in one, a frozen matrix beside a trainable bias, a frozen layer. Its layers are x + gelu(x·w + b); embedding and loss share
// a table.
type odd struct {
	vocab, dim, layers int
	freeze             bool // the matrix of layer 1, and all of layer 2
}

func (m *odd) vocabulary() int { return m.vocab }

func layerName(i int) string { return fmt.Sprintf("layer.%d", i) }

func (m *odd) Flats() []shard.FlatSpec {
	specs := []shard.FlatSpec{
		{Name: "table", Params: []shard.Param{{Name: "table", Shape: []int{m.vocab, m.dim}}, {Name: "ghost", Shape: []int{0, m.dim}}}},
	}
	if m.layers > 0 {
		specs = append(specs, shard.FlatSpec{Name: "nothing", Params: []shard.Param{{Name: "nothing", Shape: []int{0}}}})
	}
	for i := range m.layers {
		name := layerName(i)
		specs = append(specs, shard.FlatSpec{Name: name, Params: []shard.Param{
			{Name: name + ".w", Shape: []int{m.dim, m.dim}, Frozen: m.freeze && (i == 1 || i == 2)},
			{Name: name + ".b", Shape: []int{m.dim}, NoDecay: true, Frozen: m.freeze && i == 2},
		}})
	}
	return specs
}

func (m *odd) Units() []models.Unit {
	units := []models.Unit{&oddEmbed{m}}
	for i := range m.layers {
		units = append(units, &oddLayer{m, i})
	}
	return append(units, &oddLoss{m})
}

func (m *odd) Init(key prng.Key, p shard.Param, lo int, dst []float32) {
	key.Named(p.Name).FillNormal(dst, uint64(lo))
	for i := range dst {
		dst[i] *= 0.3
	}
}

type oddEmbed struct{ *odd }

func (*oddEmbed) Name() string                        { return "embed" }
func (*oddEmbed) Reads() (forward, backward []string) { return []string{"table"}, nil }
func (u *oddEmbed) Sizes(s models.Shape, _ models.Mode) models.Sizes {
	return models.Sizes{Out: s.Rows() * u.dim}
}

func (u *oddEmbed) call(c *models.Call, table, out kernels.Buffer) kernels.Embed {
	return kernels.Embed{Out: out, Table: table, Tokens: c.Tokens, Batch: c.Shape.Batch, Seq: c.Shape.Seq, Dim: u.dim}
}

func (u *oddEmbed) Forward(c *models.Call) error {
	c.K.Embed(c.S, u.call(c, c.P[0], c.Out))
	return nil
}

func (u *oddEmbed) Backward(c *models.Call) error {
	c.K.EmbedBackward(c.S, u.call(c, c.G[0], c.DOut))
	return nil
}

type oddLayer struct {
	*odd
	layer int
}

func (u *oddLayer) Name() string { return layerName(u.layer) }

func (u *oddLayer) Reads() (forward, backward []string) {
	reads := []string{layerName(u.layer)}
	if u.layer == 0 {
		reads = append(reads, "nothing")
	}
	return reads, reads
}

func (u *oddLayer) Sizes(s models.Shape, _ models.Mode) models.Sizes {
	n := s.Rows() * u.dim
	return models.Sizes{Out: n, Saved: n, BackWork: n, Flops: 2 * int64(n) * int64(u.dim)}
}

func (u *oddLayer) Forward(c *models.Call) error {
	n, d := c.Shape.Rows(), u.dim
	c.K.MatMul(c.S, kernels.MatMul{C: c.Saved, A: c.In, B: c.P[0], Bias: c.P[1], M: n, N: d, K: d})
	if c.Out.Len > 0 {
		c.K.GELU(c.S, c.Out, c.Saved)
		c.K.Sum(c.S, c.Out, c.In, c.Out)
	}
	return nil
}

func (u *oddLayer) Backward(c *models.Call) error {
	n, d := c.Shape.Rows(), u.dim
	c.K.GELUBackward(c.S, c.Work, kernels.Buffer{}, c.DOut, c.Saved)
	c.K.MatMul(c.S, kernels.MatMul{C: c.DIn, A: c.Work, B: c.P[0], M: n, N: d, K: d, TransB: true})
	c.K.Sum(c.S, c.DIn, c.DIn, c.DOut)
	if c.G[0].Len > 0 {
		c.K.MatMul(c.S, kernels.MatMul{C: c.G[0], A: c.In, B: c.Work, M: d, N: d, K: n, TransA: true, Add: c.Add})
	}
	if c.G[1].Len > 0 {
		c.K.BiasGrad(c.S, c.G[1], c.Work, n, d, c.Add)
	}
	return nil
}

type oddLoss struct{ *odd }

func (*oddLoss) Name() string                        { return "loss" }
func (*oddLoss) Reads() (forward, backward []string) { return []string{"table"}, nil }

func (u *oddLoss) Sizes(s models.Shape, m models.Mode) models.Sizes {
	if m == models.Logits {
		return models.Sizes{Out: s.Batch * u.vocab, Work: s.Batch * u.dim}
	}
	return models.Sizes{Work: s.Rows() * u.vocab, Flops: 2 * int64(s.Rows()) * int64(u.vocab) * int64(u.dim)}
}

func (u *oddLoss) Forward(c *models.Call) error {
	n, d, v := c.Shape.Rows(), u.dim, u.vocab
	if c.Mode == models.Logits {
		c.K.PickRows(c.S, c.Work, c.In, c.Targets, c.Shape.Seq, d)
		c.K.MatMul(c.S, kernels.MatMul{C: c.Out, A: c.Work, B: c.P[0], M: c.Shape.Batch, N: v, K: d, TransB: true})
		return nil
	}
	train := c.Mode == models.Train
	c.K.MatMul(c.S, kernels.MatMul{C: c.Work, A: c.In, B: c.P[0], M: n, N: v, K: d, TransB: true})
	c.K.CrossEntropy(c.S, kernels.CrossEntropy{Logits: c.Work, Targets: c.Targets, Loss: c.Loss, Scale: c.Scale, Rows: n, Vocab: v, Grad: train})
	if train {
		c.K.MatMul(c.S, kernels.MatMul{C: c.DIn, A: c.Work, B: c.P[0], M: n, N: d, K: v})
		c.K.MatMul(c.S, kernels.MatMul{C: c.G[0], A: c.Work, B: c.In, M: v, N: d, K: n, TransA: true, Add: c.Add})
	}
	return nil
}

func (*oddLoss) Backward(*models.Call) error { panic("the last unit has no backward") }

// oddJob is a job on an odd model with SGD or AdamW.
func oddJob(m *odd, leaves int, o optim.Optimizer) zeroshard.Config {
	return zeroshard.Config{Model: m, Optimizer: o, GlobalBatch: leaves, MicroBatch: 1, Seq: 5, EvalLeaves: 2, Clip: 0.5, Seed: 3}
}
