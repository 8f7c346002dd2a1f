package gpt

import (
	"zeroshard/kernels"
	"zeroshard/models"
)

// at returns a parameter, or the empty buffer for a bias that the model has not.
func at(bufs []kernels.Buffer, i int) kernels.Buffer {
	if i >= len(bufs) {
		return kernels.Buffer{}
	}
	return bufs[i]
}

// cutter cuts a buffer into windows, one after the other.
type cutter struct{ rest kernels.Buffer }

func (c *cutter) take(n int) kernels.Buffer {
	b := c.rest.Slice(0, n)
	c.rest = c.rest.Slice(n, c.rest.Len)
	return b
}

// linear is y (rows,out) = x (rows,in)·W + b, with the indices of W (in,out) and b (out) in Call.P and Call.G.
type linear struct{ w, b, in, out int }

func (l linear) forward(c *models.Call, y, x kernels.Buffer) {
	c.K.MatMul(c.S, kernels.MatMul{C: y, A: x, B: c.P[l.w], Bias: at(c.P, l.b), M: x.Len / l.in, N: l.out, K: l.in})
}

// dinput: dx = dy·Wᵀ.
func (l linear) dinput(c *models.Call, dx, dy kernels.Buffer) {
	c.K.MatMul(c.S, kernels.MatMul{C: dx, A: dy, B: c.P[l.w], M: dy.Len / l.out, N: l.in, K: l.out, TransB: true})
}

// dparams: dW = xᵀ·dy, db = column sums of dy. Frozen parameters have no gradient.
func (l linear) dparams(c *models.Call, x, dy kernels.Buffer) {
	rows := dy.Len / l.out
	if dw := at(c.G, l.w); dw.Len > 0 {
		c.K.MatMul(c.S, kernels.MatMul{C: dw, A: x, B: dy, M: l.in, N: l.out, K: rows, TransA: true, Add: c.Add})
	}
	if db := at(c.G, l.b); db.Len > 0 {
		c.K.BiasGrad(c.S, db, dy, rows, l.out, c.Add)
	}
}

// norm is a layer norm, with the indices of its weight and bias.
type norm struct {
	w, b, dim int
	eps       float32
}

// forward writes y and stats; with known it reads stats, and y is the same bits again.
func (n norm) forward(c *models.Call, y, x, stats kernels.Buffer, known bool) {
	c.K.LayerNorm(c.S, kernels.LayerNorm{Y: y, X: x, W: c.P[n.w], B: at(c.P, n.b), Stats: stats,
		Rows: x.Len / n.dim, Dim: n.dim, Eps: n.eps, Known: known})
}

// normBack is one backward of a norm. trash holds dim elements or more that nobody needs: where the weight is frozen, its gradient
// goes there.
type normBack struct {
	dx, dy, x, stats, trash kernels.Buffer
	addX                    bool
}

func (n norm) backward(c *models.Call, b normBack) {
	dw := at(c.G, n.w)
	if dw.Len == 0 {
		dw = b.trash.Slice(0, n.dim)
	}
	c.K.LayerNormBackward(c.S, kernels.LayerNormBackward{DX: b.dx, DW: dw, DB: at(c.G, n.b), DY: b.dy, X: b.x, W: c.P[n.w],
		Stats: b.stats, Rows: b.x.Len / n.dim, Dim: n.dim, AddX: b.addX, AddW: c.Add})
}

// drop is the rate of dropout in this call.
func (c Config) drop(m models.Mode) float32 {
	if m == models.Train {
		return c.Dropout
	}
	return 0
}
