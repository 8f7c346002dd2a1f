package ref

import (
	"zeroshard/device"
	"zeroshard/kernels"
	"zeroshard/kernels/internal/f32"
)

// GELU: see f32.GELU.
func (*Kernels) GELU(_ device.Stream, y, x kernels.Buffer) {
	out, in := y.Float32s(), x.Float32s()
	for i, v := range in {
		out[i] = f32.GELU(v)
	}
}

// GELUBackward: see f32.GELUGrad.
func (*Kernels) GELUBackward(_ device.Stream, dx, y, dy, x kernels.Buffer) {
	d, out, g, in := dx.Float32s(), y.Float32s(), dy.Float32s(), x.Float32s()
	for i, v := range in {
		value, slope := f32.GELUGrad(v)
		d[i] = float32(g[i] * slope)
		if len(out) > 0 {
			out[i] = value
		}
	}
}
