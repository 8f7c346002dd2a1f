package bench

import (
	"fmt"

	"zeroshard/device"
	"zeroshard/kernels"
)

// Sizes of GPT-2.
const (
	heads    = 12
	headDim  = 64
	width    = heads * headDim
	inner    = 4 * width
	entropic = 256 // rows of one chunk of logits
)

// attentions lists causal attention, forward and backward.
func attentions() (out []measurement) {
	for _, seq := range [...]int{256, 1024} {
		a := kernels.Attention{Batch: 1, Seq: seq, Heads: heads, Dim: headDim}
		shape := fmt.Sprintf("T %d, %d heads of %d", seq, heads, headDim)
		// One product of all pairs is 2·T²·D operations a head, half of it under the diagonal. Forward has two products, backward five:
		// scores again, and the gradients of v, of the probabilities, of q and of k.
		pairs := float64(seq) * float64(seq) * headDim * heads
		out = append(out,
			measurement{name: "attention", shape: shape, amount: 2 * pairs, prepare: attention(a, false)},
			measurement{name: "attention backward", shape: shape, amount: 5 * pairs, prepare: attention(a, true)})
	}
	return out
}

func attention(a kernels.Attention, back bool) func(*arena, kernels.Backend) (work, error) {
	return func(mem *arena, b kernels.Backend) (work, error) {
		n := a.Seq * a.Heads * a.Dim
		buf, err := mem.floats(n, 3*n, a.Heads*a.Seq, 3*n, n)
		if err != nil {
			return nil, err
		}
		a.Out, a.QKV, a.LSE = buf[0], buf[1], buf[2]
		forward := func() error { b.Attention(nil, a); return nil }
		if !back {
			return forward, nil
		}
		g := kernels.AttentionBackward{DQKV: buf[3], DOut: buf[4], Attention: a}
		return func() error { b.AttentionBackward(nil, g); return nil }, forward()
	}
}

// streaming is a kernel whose cost is traffic: calls of it on buffers of so many elements of fp32, perElement bytes each for all.
type streaming struct {
	name, shape string
	lengths     []int
	bytes       int // read and written in one run
	call        func(b kernels.Backend, buf []device.Buffer)
}

func (s streaming) measurement() measurement {
	total := 0
	for _, n := range s.lengths {
		total += 4 * n
	}
	return measurement{name: s.name, shape: s.shape, amount: float64(s.bytes), traffic: total,
		prepare: func(a *arena, b kernels.Backend) (work, error) {
			buf, err := a.floats(s.lengths...)
			if err != nil {
				return nil, err
			}
			return func() error { s.call(b, buf); return nil }, nil
		}}
}

// vectors lists the kernels that traffic bounds.
func vectors() (out []measurement) {
	rows := 1024
	n, m := rows*width, rows*inner
	norm := kernels.LayerNorm{Rows: rows, Dim: width, Eps: 1e-5}
	for _, s := range []streaming{
		{"layernorm", fmt.Sprintf("%dx%d", rows, width), []int{n, n, width, width, 2 * rows}, 8 * n, func(b kernels.Backend, x []device.Buffer) {
			norm.Y, norm.X, norm.W, norm.B, norm.Stats = x[0], x[1], x[2], x[3], x[4]
			b.LayerNorm(nil, norm)
		}},
		{"layernorm backward", fmt.Sprintf("%dx%d", rows, width), []int{n, n, n, width, width, width, 2 * rows}, 12 * n, layerNormBackward(rows)},
		{"gelu", fmt.Sprintf("%dx%d", rows, inner), []int{m, m}, 8 * m, func(b kernels.Backend, x []device.Buffer) { b.GELU(nil, x[0], x[1]) }},
		{"gelu backward", fmt.Sprintf("%dx%d", rows, inner), []int{m, m, m}, 12 * m, func(b kernels.Backend, x []device.Buffer) {
			b.GELUBackward(nil, x[0], device.Buffer{}, x[1], x[2])
		}},
		{"bias gradient", fmt.Sprintf("%dx%d", rows, inner), []int{inner, m}, 4 * m, func(b kernels.Backend, x []device.Buffer) {
			b.BiasGrad(nil, x[0], x[1], rows, inner, false)
		}},
	} {
		out = append(out, s.measurement())
	}
	return append(append(out, crossEntropy()), flats()...)
}

func layerNormBackward(rows int) func(kernels.Backend, []device.Buffer) {
	return func(b kernels.Backend, x []device.Buffer) {
		b.LayerNormBackward(nil, kernels.LayerNormBackward{Rows: rows, Dim: width, DX: x[0], DY: x[1], X: x[2], W: x[3], DW: x[4], DB: x[5], Stats: x[6]})
	}
}

// crossEntropy is softmax, loss and gradient in place: one read and one write of the logits.
func crossEntropy() measurement {
	n := entropic * vocabulary[1]
	return measurement{name: "cross-entropy", shape: fmt.Sprintf("%dx%d", entropic, vocabulary[1]), amount: 8 * float64(n), traffic: 4 * n,
		prepare: func(a *arena, b kernels.Backend) (work, error) {
			buf, err := a.floats(n)
			if err != nil {
				return nil, err
			}
			targets, err := a.buffer(entropic, device.I32)
			if err != nil {
				return nil, err
			}
			loss, err := a.buffer(2, device.F64)
			if err != nil {
				return nil, err
			}
			c := kernels.CrossEntropy{Logits: buf[0], Targets: targets, Loss: loss, Rows: entropic, Vocab: vocabulary[1], Grad: true}
			return func() error { b.CrossEntropy(nil, c); return nil }, nil
		}}
}
