package ref

import (
	"zeroshard/device"
	"zeroshard/kernels"
	"zeroshard/kernels/internal/f32"
)

// AdamW: the formula of kernels.AdamW with the corrections as reciprocals, and moments flushed (f32.Flush).
func (*Kernels) AdamW(_ device.Stream, a kernels.AdamW) {
	p, g, m, v, c := a.P.Float32s(), a.G.Float32s(), a.M.Float32s(), a.V.Float32s(), a.Control.Float32s()
	scale, skip := c[0], c[1] != 0
	if skip {
		return
	}
	rest1, rest2 := 1-a.Beta1, 1-a.Beta2
	r1, r2 := 1/a.C1, 1/a.C2
	for i := range p {
		gi := float32(g[i] * scale)
		m[i] = f32.Flush(float32(a.Beta1*m[i]) + float32(rest1*gi))
		v[i] = f32.Flush(float32(a.Beta2*v[i]) + float32(float32(rest2*gi)*gi))
		step := float32(m[i]*r1) / (f32.Sqrt(float32(v[i]*r2)) + a.Eps)
		p[i] -= float32(a.LR * (float32(a.Decay*p[i]) + step))
	}
}

// SGD: the formula of kernels.SGD, the momentum flushed.
func (*Kernels) SGD(_ device.Stream, a kernels.SGD) {
	p, g, m, c := a.P.Float32s(), a.G.Float32s(), a.M.Float32s(), a.Control.Float32s()
	scale, skip := c[0], c[1] != 0
	if skip {
		return
	}
	for i := range p {
		step := float32(g[i]*scale) + float32(a.Decay*p[i])
		if len(m) > 0 {
			m[i] = f32.Flush(float32(a.Momentum*m[i]) + step)
			step = m[i]
		}
		p[i] -= float32(a.LR * step)
	}
}
