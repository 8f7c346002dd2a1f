package kerneltest

import (
	"math"
	"testing"

	"zeroshard/kernels"
	"zeroshard/prng"
)

// check is a kernel with its backward: in are the inputs that have gradients. forward is the float64 model; run is the
// kernels' forward and backward, given the gradient of the output.
type check struct {
	name    string
	in      []kernels.Buffer
	forward func(in [][]float64) []float64
	run     func(k Kernels, m *mem, dout func(n int) kernels.Buffer) (out kernels.Buffer, din []kernels.Buffer)
}

// Gradients compares outputs with a float64 model, and gradients of Σ dout·out with the model's central differences.
func Gradients(t *testing.T, k Kernels) {
	m := newMem(42, numbers, false)
	defer m.release()
	for _, c := range []check{matmulCheck(m, 0), matmulCheck(m, 1), matmulCheck(m, 2), matmulCheck(m, 3), embedCheck(m), layernormCheck(m),
		attentionCheck(m, 0), attentionCheck(m, 0.3), geluCheck(m), dropoutCheck(m), crossEntropyCheck(m)} {
		t.Run(c.name, func(t *testing.T) { c.judge(t, k, m) })
	}
}

// tolerance is relative to the largest value of a tensor.
const tolerance = 2e-6

func (c check) judge(t *testing.T, k Kernels, m *mem) {
	in := make([][]float64, len(c.in))
	for i, b := range c.in {
		in[i] = widen(b)
	}
	want := c.forward(in)
	var weights []float64
	out, din := c.run(k, m, func(n int) kernels.Buffer {
		b := m.f32(n)
		weights = widen(b)
		return b
	})
	near(t, "output", widen(out), want)
	for i := range in {
		near(t, "gradient of input "+string(rune('0'+i)), widen(din[i]), differences(c, in, i, weights))
	}
}

func differences(c check, in [][]float64, i int, weights []float64) []float64 {
	const h = 1e-5
	grad := make([]float64, len(in[i]))
	at := func(j int, v float64) (s float64) {
		old := in[i][j]
		in[i][j] += v
		for o, y := range c.forward(in) {
			s += weights[o] * y
		}
		in[i][j] = old
		return s
	}
	for j := range grad {
		grad[j] = (at(j, h) - at(j, -h)) / (2 * h)
	}
	return grad
}

func near(t *testing.T, what string, got, want []float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s has %d elements, want %d", what, len(got), len(want))
	}
	largest := 0.0
	for _, w := range want {
		largest = max(largest, math.Abs(w))
	}
	if largest == 0 {
		t.Fatalf("%s: nothing to compare, all is 0", what)
	}
	for i := range want {
		if !(math.Abs(got[i]-want[i]) <= tolerance*largest) {
			t.Errorf("%s: element %d is %g, want %g", what, i, got[i], want[i])
			return
		}
	}
}

func widen(b kernels.Buffer) []float64 {
	out := make([]float64, b.Len)
	for i, v := range b.Float32s() {
		out[i] = float64(v)
	}
	return out
}

// matmulCheck: with C = op(A)·op(B) + bias, the gradients are matmuls again. flags: TransA, TransB.
func matmulCheck(m *mem, flags int) check {
	f := kernels.MatMul{M: 5, N: 7, K: 6, TransA: flags&1 != 0, TransB: flags&2 != 0}
	f.A, f.B, f.Bias = m.f32(f.M*f.K), m.f32(f.K*f.N), m.f32(f.N)
	return check{[...]string{"MatMul/NN", "MatMul/TN", "MatMul/NT", "MatMul/TT"}[flags], []kernels.Buffer{f.A, f.B, f.Bias},
		func(in [][]float64) []float64 { return matmul64(f, in[0], in[1], in[2]) },
		func(k Kernels, m *mem, dout func(int) kernels.Buffer) (kernels.Buffer, []kernels.Buffer) {
			f.C = m.f32(f.M * f.N)
			dc, da, db, dbias := dout(f.M*f.N), m.f32(f.M*f.K), m.f32(f.K*f.N), m.f32(f.N)
			// dA = dC·Bᵀ, or its transpose B·dCᵀ; dB = Aᵀ·dC, or its transpose dCᵀ·A.
			ga := kernels.MatMul{C: da, A: dc, B: f.B, M: f.M, N: f.K, K: f.N, TransB: !f.TransB}
			if f.TransA {
				ga = kernels.MatMul{C: da, A: f.B, B: dc, M: f.K, N: f.M, K: f.N, TransA: f.TransB, TransB: true}
			}
			gb := kernels.MatMul{C: db, A: f.A, B: dc, M: f.K, N: f.N, K: f.M, TransA: !f.TransA}
			if f.TransB {
				gb = kernels.MatMul{C: db, A: dc, B: f.A, M: f.N, N: f.K, K: f.M, TransA: true, TransB: f.TransA}
			}
			k.MatMul(nil, f)
			k.MatMul(nil, ga)
			k.MatMul(nil, gb)
			k.BiasGrad(nil, dbias, dc, f.M, f.N, false)
			return f.C, []kernels.Buffer{da, db, dbias}
		}}
}

func embedCheck(m *mem) check {
	const batch, seq, dim, vocab = 2, 3, 5, 4
	e := kernels.Embed{Table: m.f32(vocab * dim), Pos: m.f32(seq * dim), Tokens: m.ints(batch*seq, 0, vocab), Batch: batch, Seq: seq, Dim: dim}
	return check{"Embed", []kernels.Buffer{e.Table, e.Pos},
		func(in [][]float64) []float64 { return embed64(e, e.Tokens.Int32s(), in[0], in[1]) },
		func(k Kernels, m *mem, dout func(int) kernels.Buffer) (kernels.Buffer, []kernels.Buffer) {
			e.Out = m.f32(batch * seq * dim)
			g := e
			g.Out, g.Table, g.Pos = dout(batch*seq*dim), m.f32(vocab*dim), m.f32(seq*dim)
			k.Zero(nil, g.Table)
			k.Zero(nil, g.Pos)
			k.Embed(nil, e)
			k.EmbedBackward(nil, g)
			return e.Out, []kernels.Buffer{g.Table, g.Pos}
		}}
}

func layernormCheck(m *mem) check {
	const rows, dim = 3, 37
	x, w, b := m.f32(rows*dim), m.f32(dim), m.f32(dim)
	return check{"LayerNorm", []kernels.Buffer{x, w, b},
		func(in [][]float64) []float64 { return layernorm64(rows, dim, 1e-5, in[0], in[1], in[2]) },
		func(k Kernels, m *mem, dout func(int) kernels.Buffer) (kernels.Buffer, []kernels.Buffer) {
			l := kernels.LayerNorm{Y: m.f32(rows * dim), X: x, W: w, B: b, Stats: m.f32(2 * rows), Rows: rows, Dim: dim, Eps: 1e-5}
			k.LayerNorm(nil, l)
			g := kernels.LayerNormBackward{DX: m.f32(rows * dim), DW: m.f32(dim), DB: m.f32(dim), DY: dout(rows * dim), X: x, W: w, Stats: l.Stats, Rows: rows, Dim: dim}
			k.LayerNormBackward(nil, g)
			return l.Y, []kernels.Buffer{g.DX, g.DW, g.DB}
		}}
}

func attentionCheck(m *mem, drop float32) check {
	a := kernels.Attention{Batch: 2, Seq: 6, Heads: 2, Dim: 5, Drop: drop, Key: prng.New(3)}
	n := a.Batch * a.Seq * a.Heads * a.Dim
	a.QKV = m.f32(3 * n)
	name := "Attention"
	if drop > 0 {
		name = "Attention/dropout"
	}
	return check{name, []kernels.Buffer{a.QKV},
		func(in [][]float64) []float64 { return attention64(a, in[0]) },
		func(k Kernels, m *mem, dout func(int) kernels.Buffer) (kernels.Buffer, []kernels.Buffer) {
			a.Out, a.LSE = m.f32(n), m.f32(a.Batch*a.Heads*a.Seq)
			k.Attention(nil, a)
			g := kernels.AttentionBackward{DQKV: m.f32(3 * n), DOut: dout(n), Attention: a}
			k.AttentionBackward(nil, g)
			return a.Out, []kernels.Buffer{g.DQKV}
		}}
}

func geluCheck(m *mem) check {
	const n = 50
	x := m.f32(n)
	spread(x, 3)
	return check{"GELU", []kernels.Buffer{x},
		func(in [][]float64) []float64 { return gelu64(in[0]) },
		func(k Kernels, m *mem, dout func(int) kernels.Buffer) (kernels.Buffer, []kernels.Buffer) {
			y, dx := m.f32(n), m.f32(n)
			k.GELUBackward(nil, dx, y, dout(n), x)
			return y, []kernels.Buffer{dx}
		}}
}

func dropoutCheck(m *mem) check {
	const n, p = 60, float32(0.25)
	x, key := m.f32(n), prng.New(4)
	return check{"Dropout", []kernels.Buffer{x},
		func(in [][]float64) []float64 {
			y := make([]float64, n)
			for i := range y {
				y[i] = in[0][i] * keep64(key, uint64(i), p)
			}
			return y
		},
		func(k Kernels, m *mem, dout func(int) kernels.Buffer) (kernels.Buffer, []kernels.Buffer) {
			y, dx := m.f32(n), m.f32(n)
			k.Dropout(nil, y, x, p, key)
			k.Dropout(nil, dx, dout(n), p, key)
			return y, []kernels.Buffer{dx}
		}}
}

func crossEntropyCheck(m *mem) check {
	const rows, vocab = 4, 45
	x, targets := m.f32(rows*vocab), m.ints(rows, 0, vocab)
	targets.Int32s()[1] = -1
	return check{"CrossEntropy", []kernels.Buffer{x},
		func(in [][]float64) []float64 { return crossEntropy64(rows, vocab, in[0], targets.Int32s()) },
		func(k Kernels, m *mem, dout func(int) kernels.Buffer) (kernels.Buffer, []kernels.Buffer) {
			loss, dx := m.f64(2), m.f32(rows*vocab)
			copy(dx.Float32s(), x.Float32s())
			k.CrossEntropy(nil, kernels.CrossEntropy{Logits: dx, Targets: targets, Loss: loss, Scale: dout(1), Rows: rows, Vocab: vocab, Grad: true})
			return m.of(float32(loss.Float64s()[0])), []kernels.Buffer{dx}
		}}
}
