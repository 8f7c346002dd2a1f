package cpu

import (
	"zeroshard/device"
	"zeroshard/kernels"
	"zeroshard/kernels/internal/f32"
)

// adamwConst is the scalars of one call, in the order in which assembly reads them.
type adamwConst struct {
	scale, beta1, rest1, beta2, rest2 float32
	r1, r2, eps, decay, lr            float32
}

type adamwJob struct {
	k          *Kernels
	p, g, m, v []float32
	c          adamwConst
}

// AdamW: see kernels.AdamW and package ref.
func (k *Kernels) AdamW(_ device.Stream, a kernels.AdamW) {
	control := a.Control.Float32s()
	if control[1] != 0 {
		return
	}
	j := &k.jobs.adamw
	j.p, j.g, j.m, j.v = a.P.Float32s(), a.G.Float32s(), a.M.Float32s(), a.V.Float32s()
	j.c = adamwConst{scale: control[0], beta1: a.Beta1, rest1: 1 - a.Beta1, beta2: a.Beta2, rest2: 1 - a.Beta2,
		r1: 1 / a.C1, r2: 1 / a.C2, eps: a.Eps, decay: a.Decay, lr: a.LR}
	k.run(chunks(len(j.p)), j)
}

func (j *adamwJob) Part(i int) {
	lo, hi := cut(i, len(j.p))
	j.k.path.adamw(j.p[lo:hi], j.g[lo:hi], j.m[lo:hi], j.v[lo:hi], j.c)
}

func adamw(p, g, m, v []float32, k adamwConst) {
	g, m, v = g[:len(p)], m[:len(p)], v[:len(p)]
	for i, old := range p {
		gi := float32(g[i] * k.scale)
		mi := f32.Flush(float32(k.beta1*m[i]) + float32(k.rest1*gi))
		vi := f32.Flush(float32(k.beta2*v[i]) + float32(float32(k.rest2*gi)*gi))
		m[i], v[i] = mi, vi
		step := float32(mi*k.r1) / (f32.Sqrt(float32(vi*k.r2)) + k.eps)
		p[i] = old - float32(k.lr*(float32(k.decay*old)+step))
	}
}

// sgdConst is the scalars of one call.
type sgdConst struct{ scale, momentum, decay, lr float32 }

type sgdJob struct {
	k       *Kernels
	p, g, m []float32
	c       sgdConst
}

// SGD: see kernels.SGD and package ref.
func (k *Kernels) SGD(_ device.Stream, a kernels.SGD) {
	control := a.Control.Float32s()
	if control[1] != 0 {
		return
	}
	j := &k.jobs.sgd
	j.p, j.g, j.m = a.P.Float32s(), a.G.Float32s(), a.M.Float32s()
	j.c = sgdConst{control[0], a.Momentum, a.Decay, a.LR}
	k.run(chunks(len(j.p)), j)
}

func (j *sgdJob) Part(i int) {
	lo, hi := cut(i, len(j.p))
	var m []float32
	if j.m != nil {
		m = j.m[lo:hi]
	}
	j.k.path.sgd(j.p[lo:hi], j.g[lo:hi], m, j.c)
}

func sgd(p, g, m []float32, k sgdConst) {
	g = g[:len(p)]
	for i, old := range p {
		step := float32(g[i]*k.scale) + float32(k.decay*old)
		if m != nil {
			step = f32.Flush(float32(k.momentum*m[i]) + step)
			m[i] = step
		}
		p[i] = old - float32(k.lr*step)
	}
}
