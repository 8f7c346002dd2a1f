package ref

import (
	"zeroshard/kernels"
	"zeroshard/kernels/internal/f32"
)

// Kernels is kernels.Vector and kernels.Net. It has no state.
type Kernels struct {
	fused bool
}

var (
	_ kernels.Vector = (*Kernels)(nil)
	_ kernels.Net    = (*Kernels)(nil)
)

// New returns the truth for backends that round product and sum.
func New() *Kernels { return &Kernels{} }

// NewFused returns the truth for backends whose products use fused multiply-add.
func NewFused() *Kernels { return &Kernels{fused: true} }

// Scratch is 0.
func (*Kernels) Scratch() int64 { return 0 }

// mulAdd is one link of a product's chain: acc + a·b.
func (k *Kernels) mulAdd(acc, a, b float32) float32 {
	if k.fused {
		return f32.FMA(a, b, acc)
	}
	return acc + float32(a*b)
}

// dot is a product's chain from 0.
func (k *Kernels) dot(x, y []float32) float32 {
	var acc float32
	for i := range x {
		acc = k.mulAdd(acc, x[i], y[i])
	}
	return acc
}

// axpy continues the chains of y: y += a·x.
func (k *Kernels) axpy(y []float32, a float32, x []float32) {
	for i := range y {
		y[i] = k.mulAdd(y[i], a, x[i])
	}
}

// put is "= or +=".
func put(dst *float32, v float32, add bool) {
	if add {
		v = *dst + v
	}
	*dst = v
}
