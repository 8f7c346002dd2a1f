package modeltest

import (
	"errors"

	"zeroshard/kernels"
	"zeroshard/models"
	"zeroshard/prng"
	"zeroshard/shard"
)

// toy is the smallest model with all that the contract speaks of: an embedding and a projection that share a table, and between
// them one layer h = gelu(x·W + b). fault breaks it in one way.
type toy struct {
	width, vocab int
	fault        string
}

var errToy = errors.New("toy: broken")

func (m *toy) Flats() []shard.FlatSpec {
	specs := []shard.FlatSpec{
		{Name: "shared", Params: []shard.Param{{Name: "table", Shape: []int{m.vocab, m.width}}}},
		{Name: "layer", Params: []shard.Param{{Name: "w", Shape: []int{m.width, m.width}}, {Name: "b", Shape: []int{m.width}, NoDecay: true}}},
	}
	switch m.fault {
	case "two parameters of one name":
		specs[1].Params[1].Name = "w"
		specs[1].Params[1].Shape = []int{m.width, m.width}
	case "unread flat":
		specs = append(specs, shard.FlatSpec{Name: "alone"})
	}
	return specs
}

func (m *toy) Units() []models.Unit {
	return []models.Unit{&toyUnit{m, "embed"}, &toyUnit{m, "layer"}, &toyUnit{m, "loss"}}
}

func (m *toy) Init(key prng.Key, p shard.Param, lo int, dst []float32) {
	at := uint64(lo)
	switch m.fault {
	case "initial values by slice":
		at = 0
	case "initial values without key":
		key = prng.Key{}
	}
	key.Named(p.Name).FillNormal(dst, at)
	for i := range dst {
		dst[i] *= 0.3
	}
}

type toyUnit struct {
	*toy
	name string
}

func (u *toyUnit) Name() string { return u.name }

func (u *toyUnit) Reads() (forward, backward []string) {
	if u.name != "layer" {
		return []string{"shared"}, nil
	}
	if u.fault == "backward reads more" {
		return []string{"layer"}, []string{"layer", "shared"}
	}
	return []string{"layer"}, []string{"layer"}
}

func (u *toyUnit) Sizes(s models.Shape, m models.Mode) models.Sizes {
	n := s.Rows() * u.width
	switch {
	case u.name == "embed":
		return models.Sizes{Out: n}
	case u.name == "layer" && u.fault == "saves more than it uses":
		return models.Sizes{Out: n, Saved: n + 1, BackWork: n}
	case u.name == "layer":
		return models.Sizes{Out: n, Saved: n, BackWork: n}
	case m == models.Logits:
		return models.Sizes{Out: s.Batch * u.vocab, Work: s.Batch * u.width}
	}
	return models.Sizes{Work: s.Rows() * u.vocab}
}

func (u *toyUnit) Forward(c *models.Call) error {
	n, d, v := c.Shape.Rows(), u.width, u.vocab
	switch {
	case u.name == "embed":
		if c.Out.Len > 0 {
			c.K.Embed(c.S, kernels.Embed{Out: c.Out, Table: c.P[0], Tokens: c.Tokens, Batch: c.Shape.Batch, Seq: c.Shape.Seq, Dim: d})
		}
	case u.name == "layer":
		saved := c.Saved.Slice(0, n*d)
		c.K.MatMul(c.S, kernels.MatMul{C: saved, A: c.In, B: c.P[0], Bias: c.P[1], M: n, N: d, K: d})
		if c.Out.Len > 0 {
			c.K.GELU(c.S, c.Out, saved)
		}
		u.breakForward(c)
	case c.Mode == models.Logits:
		c.K.PickRows(c.S, c.Work, c.In, c.Targets, c.Shape.Seq, d)
		c.K.MatMul(c.S, kernels.MatMul{C: c.Out, A: c.Work, B: c.P[0], M: c.Shape.Batch, N: v, K: d, TransB: true})
		if u.fault == "other logits" {
			c.Out.Float32s()[0]++
		}
	default:
		u.loss(c)
	}
	return nil
}

func (u *toyUnit) breakForward(c *models.Call) {
	switch u.fault {
	case "writes past Saved":
		past := c.Saved
		past.Len++
		past.Float32s()[c.Saved.Len] = 1
	case "changes its input":
		c.In.Float32s()[0]++
	case "recomputes something else":
		if c.Out.Len == 0 {
			c.Saved.Float32s()[0]++
		}
	case "leaves Out unwritten":
		if c.Out.Len > 0 {
			out := c.Out.Float32s()
			garbage := NewLeaf(c.K, u.toy, c.Shape, u.vocab).memory(1).values()[0]
			out[len(out)-1] = garbage
		}
	}
}

func (u *toyUnit) loss(c *models.Call) {
	n, d, v := c.Shape.Rows(), u.width, u.vocab
	train, scale, targets := c.Mode == models.Train, c.Scale, c.Targets
	if u.fault == "ignores the scale" {
		scale = kernels.Buffer{}
	}
	c.K.MatMul(c.S, kernels.MatMul{C: c.Work, A: c.In, B: c.P[0], M: n, N: v, K: d, TransB: true})
	c.K.CrossEntropy(c.S, kernels.CrossEntropy{Logits: c.Work, Targets: targets, Loss: c.Loss, Scale: scale, Rows: n, Vocab: v, Grad: train})
	if u.fault == "counts ignored targets" {
		c.Loss.Float64s()[1] = float64(n)
	}
	if !train {
		return
	}
	c.K.MatMul(c.S, kernels.MatMul{C: c.DIn, A: c.Work, B: c.P[0], M: n, N: d, K: v})
	if c.G[0].Len > 0 {
		c.K.MatMul(c.S, kernels.MatMul{C: c.G[0], A: c.Work, B: c.In, M: v, N: d, K: n, TransA: true, Add: c.Add && u.fault != "ignores Add"})
	}
}

func (u *toyUnit) Backward(c *models.Call) error {
	n, d := c.Shape.Rows(), u.width
	if u.name == "embed" {
		if c.G[0].Len > 0 {
			c.K.EmbedBackward(c.S, kernels.Embed{Out: c.DOut, Table: c.G[0], Tokens: c.Tokens, Batch: c.Shape.Batch, Seq: c.Shape.Seq, Dim: d})
		}
		return nil
	}
	c.K.GELUBackward(c.S, c.Work, kernels.Buffer{}, c.DOut, c.Saved.Slice(0, n*d))
	c.K.MatMul(c.S, kernels.MatMul{C: c.DIn, A: c.Work, B: c.P[0], M: n, N: d, K: d, TransB: true})
	if c.G[0].Len > 0 {
		c.K.MatMul(c.S, kernels.MatMul{C: c.G[0], A: c.In, B: c.Work, M: d, N: d, K: n, TransA: true, Add: c.Add || u.fault == "adds to garbage"})
	} else if u.fault == "fails where frozen" {
		return errToy
	}
	if c.G[1].Len > 0 {
		c.K.BiasGrad(c.S, c.G[1], c.Work, n, d, c.Add)
		if u.fault == "wrong gradient" {
			c.G[1].Float32s()[d-1] *= 1.2
		}
	}
	return nil
}
