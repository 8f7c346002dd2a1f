package perceptron

import (
	"errors"

	"zeroshard/kernels"
	"zeroshard/models"
)

// Call.P and Call.G of hidden, by parameter.
const (
	w1 = iota // (K·d, h): rows [j·d, (j+1)·d) are W1ⱼ
	b1
	w2
	b2
)

// Call.P and Call.G of loss; embed has the table alone.
const (
	table = iota
	bias
)

// embed: out (B·T, d).
type embed struct{ Config }

func (u *embed) Name() string                        { return "embed" }
func (u *embed) Reads() (forward, backward []string) { return []string{"table"}, nil }

func (u *embed) Sizes(s models.Shape, _ models.Mode) models.Sizes {
	return models.Sizes{Out: s.Rows() * u.Width}
}

func (u *embed) call(c *models.Call, table, out kernels.Buffer) kernels.Embed {
	return kernels.Embed{Out: out, Table: table, Tokens: c.Tokens, Batch: c.Shape.Batch, Seq: c.Shape.Seq, Dim: u.Width}
}

func (u *embed) Forward(c *models.Call) error {
	if c.Out.Len > 0 {
		c.K.Embed(c.S, u.call(c, c.P[table], c.Out))
	}
	return nil
}

// Backward adds, as the table's other reader does: Call.Add is true for both.
func (u *embed) Backward(c *models.Call) error {
	if c.G[table].Len > 0 {
		c.K.EmbedBackward(c.S, u.call(c, c.G[table], c.DOut))
	}
	return nil
}

// loss: logits (B·T, V) = in (B·T, d)·tableᵀ + bias, and cross-entropy. In training its forward does the backward too.
type loss struct{ Config }

func (u *loss) Name() string                        { return "loss" }
func (u *loss) Reads() (forward, backward []string) { return []string{"table", "bias"}, nil }

func (u *loss) Sizes(s models.Shape, m models.Mode) models.Sizes {
	if m == models.Logits {
		return models.Sizes{Out: s.Batch * u.Vocab, Work: s.Batch * u.Width, Flops: 2 * int64(s.Batch) * int64(u.Vocab) * int64(u.Width)}
	}
	return models.Sizes{Work: s.Rows() * u.Vocab, Flops: 2 * int64(s.Rows()) * int64(u.Vocab) * int64(u.Width)}
}

func (u *loss) Forward(c *models.Call) error {
	n, d, v := c.Shape.Rows(), u.Width, u.Vocab
	if c.Mode == models.Logits { // of one place in each sequence
		c.K.PickRows(c.S, c.Work, c.In, c.Targets, c.Shape.Seq, d)
		u.project(c, c.Out, c.Work, c.Shape.Batch)
		return nil
	}
	logits := c.Work
	u.project(c, logits, c.In, n)
	c.K.CrossEntropy(c.S, kernels.CrossEntropy{Logits: logits, Targets: c.Targets, Loss: c.Loss, Scale: c.Scale,
		Rows: n, Vocab: v, Grad: c.Mode == models.Train})
	if c.Mode == models.Eval {
		return nil
	}
	c.K.MatMul(c.S, kernels.MatMul{C: c.DIn, A: logits, B: c.P[table], M: n, N: d, K: v})
	if g := c.G[table]; g.Len > 0 {
		c.K.MatMul(c.S, kernels.MatMul{C: g, A: logits, B: c.In, M: v, N: d, K: n, TransA: true, Add: c.Add})
	}
	if g := c.G[bias]; g.Len > 0 {
		c.K.BiasGrad(c.S, g, logits, n, v, c.Add)
	}
	return nil
}

func (u *loss) project(c *models.Call, logits, x kernels.Buffer, rows int) {
	c.K.MatMul(c.S, kernels.MatMul{C: logits, A: x, B: c.P[table], Bias: c.P[bias], M: rows, N: u.Vocab, K: u.Width, TransB: true})
}

var errOnePass = errors.New("perceptron: the last unit has no backward: its forward has done it")

func (u *loss) Backward(*models.Call) error { return errOnePass }
