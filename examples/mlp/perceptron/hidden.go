package perceptron

import (
	"zeroshard/kernels"
	"zeroshard/models"
)

// hidden: out (B·T, d) = GELU(Σⱼ x(t−j)·W1ⱼ + b1)·W2 + b2. It saves what enters GELU, (B·T, h).
//
// x(t−j) for all t of a sequence is In, j rows further up: so each j is a product of the first T−j rows of x with W1ⱼ, added to
// the last T−j rows of the result.
type hidden struct{ Config }

func (u *hidden) Name() string                        { return "hidden" }
func (u *hidden) Reads() (forward, backward []string) { return []string{"hidden"}, []string{"hidden"} }

func (u *hidden) Sizes(s models.Shape, _ models.Mode) models.Sizes {
	n, h := s.Rows(), u.Hidden
	return models.Sizes{Out: n * u.Width, Saved: n * h, Work: n * h, BackWork: 2 * n * h,
		Flops: 2 * int64(n) * int64(h) * int64(u.Context+1) * int64(u.Width)}
}

// shift is one product of the sum: the rows of x and of the result that W1ⱼ connects in one sequence.
type shift struct {
	j, rows          int
	lo, hi, from, to int // rows [lo, hi) of x go to rows [from, to) of the result
}

// shifts calls f for every j and every sequence of the leaf; for j = 0 all sequences are one product.
func (u *hidden) shifts(s models.Shape, f func(shift)) {
	f(shift{rows: s.Rows(), hi: s.Rows(), to: s.Rows()})
	for j := 1; j < min(u.Context, s.Seq); j++ {
		for b := range s.Batch {
			first, end := b*s.Seq, (b+1)*s.Seq
			f(shift{j: j, rows: s.Seq - j, lo: first, hi: end - j, from: first + j, to: end})
		}
	}
}

func rows(b kernels.Buffer, lo, hi, width int) kernels.Buffer { return b.Slice(lo*width, hi*width) }

// block is W1ⱼ, or its gradient.
func (u *hidden) block(b kernels.Buffer, j int) kernels.Buffer {
	return rows(b, j*u.Width, (j+1)*u.Width, u.Hidden)
}

func (u *hidden) Forward(c *models.Call) error {
	n, h, d := c.Shape.Rows(), u.Hidden, u.Width
	u.shifts(c.Shape, func(s shift) {
		m := kernels.MatMul{C: rows(c.Saved, s.from, s.to, h), A: rows(c.In, s.lo, s.hi, d), B: u.block(c.P[w1], s.j), M: s.rows, N: h, K: d}
		if m.Add = s.j > 0; !m.Add {
			m.Bias = c.P[b1]
		}
		c.K.MatMul(c.S, m)
	})
	if c.Out.Len == 0 { // only what backward wants is asked for
		return nil
	}
	c.K.GELU(c.S, c.Work, c.Saved)
	c.K.MatMul(c.S, kernels.MatMul{C: c.Out, A: c.Work, B: c.P[w2], Bias: c.P[b2], M: n, N: d, K: h})
	return nil
}

func (u *hidden) Backward(c *models.Call) error {
	n, h, d := c.Shape.Rows(), u.Hidden, u.Width
	act, dact := c.Work.Slice(0, n*h), c.Work.Slice(n*h, 2*n*h)
	c.K.MatMul(c.S, kernels.MatMul{C: dact, A: c.DOut, B: c.P[w2], M: n, N: h, K: d, TransB: true})
	c.K.GELUBackward(c.S, dact, act, dact, c.Saved) // dact is now the gradient of what enters GELU
	if g := c.G[w2]; g.Len > 0 {
		c.K.MatMul(c.S, kernels.MatMul{C: g, A: act, B: c.DOut, M: h, N: d, K: n, TransA: true, Add: c.Add})
	}
	if g := c.G[b2]; g.Len > 0 {
		c.K.BiasGrad(c.S, g, c.DOut, n, d, c.Add)
	}
	if g := c.G[b1]; g.Len > 0 {
		c.K.BiasGrad(c.S, g, dact, n, h, c.Add)
	}
	u.shifts(c.Shape, func(s shift) {
		c.K.MatMul(c.S, kernels.MatMul{C: rows(c.DIn, s.lo, s.hi, d), A: rows(dact, s.from, s.to, h), B: u.block(c.P[w1], s.j),
			M: s.rows, N: d, K: h, TransB: true, Add: s.j > 0})
	})
	u.firstLayer(c, dact)
	return nil
}

// firstLayer writes the gradient of W1: the first product into a block writes or adds as Call.Add says, the others add. A block that
// no sequence is long enough for is empty of terms.
func (u *hidden) firstLayer(c *models.Call, dact kernels.Buffer) {
	g, h, d := c.G[w1], u.Hidden, u.Width
	if g.Len == 0 {
		return
	}
	written := 0 // blocks
	u.shifts(c.Shape, func(s shift) {
		first := s.j == written
		if first {
			written++
		}
		c.K.MatMul(c.S, kernels.MatMul{C: u.block(g, s.j), A: rows(c.In, s.lo, s.hi, d), B: rows(dact, s.from, s.to, h),
			M: d, N: h, K: s.rows, TransA: true, Add: c.Add || !first})
	})
	for ; written < u.Context && !c.Add; written++ { // no rows: a sum without terms
		c.K.BiasGrad(c.S, u.block(g, written), dact, 0, d*h, false)
	}
}
