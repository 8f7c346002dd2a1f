package ref

import (
	"math"

	"zeroshard/device"
	"zeroshard/kernels"
	"zeroshard/kernels/internal/f32"
	"zeroshard/prng"
)

// head is one head of one sequence: views into buffers (B·T, 3·Heads·Dim) and (B·T, Heads·Dim).
type head struct {
	*kernels.Attention
	b, h int
}

func (a head) in(buf []float32, t, part int) []float32 {
	lo := ((a.b*a.Seq+t)*3+part)*a.Heads*a.Dim + a.h*a.Dim
	return buf[lo : lo+a.Dim]
}

func (a head) out(buf []float32, t int) []float32 {
	lo := (a.b*a.Seq+t)*a.Heads*a.Dim + a.h*a.Dim
	return buf[lo : lo+a.Dim]
}

// row is the index of query t's number in LSE; its dropout numbers start at row·Seq.
func (a head) row(t int) int { return (a.b*a.Heads+a.h)*a.Seq + t }

func (a head) scale() float32 { return float32(1 / math.Sqrt(float64(a.Dim))) }

// parts of a row of QKV.
const query, key, value = 0, 1, 2

// vectors are keys or values of a head: element i of that at place t is x[t·place + i·element].
type vectors struct {
	x              []float32
	place, element int
}

func (a head) vectors(part int) vectors {
	width := a.Heads * a.Dim
	return vectors{a.QKV.Float32s()[(a.b*a.Seq*3+part)*width+a.h*a.Dim:], 3 * width, 1}
}

// Attention: each query on its own, softmax over blocks of keys.
func (k *Kernels) Attention(_ device.Stream, a kernels.Attention) {
	lse := a.LSE.Float32s()
	for b := range a.Batch {
		for h := range a.Heads {
			hd := head{&a, b, h}
			for t := range a.Seq {
				l := k.attend(look{hd.in(a.QKV.Float32s(), t, query), hd.out(a.Out.Float32s(), t), hd.vectors(key), hd.vectors(value), t + 1, hd.row(t) * a.Seq},
					a.Drop, a.Key)
				if len(lse) > 0 {
					lse[hd.row(t)] = l
				}
			}
		}
	}
}

// look is a query that looks at the first n places.
type look struct {
	q, out       []float32
	keys, values vectors
	n            int
	number       int // of the first of its dropout numbers
}

// attend writes the output of a query and returns its log-sum-exp. When a block raises the maximum, what was summed under the
// old one shrinks by exp(old − new).
func (k *Kernels) attend(l look, drop float32, key prng.Key) float32 {
	scale := float32(1 / math.Sqrt(float64(len(l.q))))
	m, sum := float32(math.Inf(-1)), float32(0)
	clear(l.out)
	var block [f32.KeyBlock]float32
	for lo := 0; lo < l.n; lo += f32.KeyBlock {
		p := block[:min(f32.KeyBlock, l.n-lo)]
		for j := range p {
			var acc float32
			for i := range l.q {
				acc = k.mulAdd(acc, l.q[i], l.keys.x[(lo+j)*l.keys.place+i*l.keys.element])
			}
			p[j] = float32(acc * scale)
		}
		next := max(m, f32.Max(p))
		shrink := f32.Exp(m - next)
		for j := range p {
			p[j] = f32.Exp(p[j] - next)
		}
		sum = float32(sum*shrink) + f32.Sum(p)
		m = next
		for d := range l.out {
			l.out[d] = float32(l.out[d] * shrink)
		}
		for j := range p {
			if drop > 0 {
				p[j] = float32(p[j] * keep(key, uint64(l.number+lo+j), drop))
			}
			for i := range l.out {
				l.out[i] = k.mulAdd(l.out[i], p[j], l.values.x[(lo+j)*l.values.place+i*l.values.element])
			}
		}
	}
	r := 1 / sum
	for d := range l.out {
		l.out[d] = float32(l.out[d] * r)
	}
	return m + float32(f32.Log(float64(sum)))
}

// AttentionBackward: queries ascending, and for each its keys ascending, so that every chain of dq, dk and dv ascends. With
// p = exp(s − lse), p' = p after dropout and D = dO·O (which is Σ p'·(dO·v)):
//
//	dv += p'·dO   ds = p·(keep·(dO·v) − D)·scale   dq += ds·k   dk += ds·q
func (k *Kernels) AttentionBackward(_ device.Stream, a kernels.AttentionBackward) {
	clear(a.DQKV.Float32s())
	for b := range a.Batch {
		for h := range a.Heads {
			for t := range a.Seq {
				k.attendBackward(&a, head{&a.Attention, b, h}, t)
			}
		}
	}
}

func (k *Kernels) attendBackward(b *kernels.AttentionBackward, a head, t int) {
	qkv, dqkv := a.QKV.Float32s(), b.DQKV.Float32s()
	q, dq, do := a.in(qkv, t, query), a.in(dqkv, t, query), a.out(b.DOut.Float32s(), t)
	lse, scale := a.LSE.Float32s()[a.row(t)], a.scale()
	delta := f32.Dot(do, a.out(a.Out.Float32s(), t))
	for j := range t + 1 {
		p := f32.Exp(float32(k.dot(q, a.in(qkv, j, key))*scale) - lse)
		dp, dropped := k.dot(do, a.in(qkv, j, value)), p
		if a.Drop > 0 {
			f := keep(a.Key, uint64(a.row(t))*uint64(a.Seq)+uint64(j), a.Drop)
			dp, dropped = float32(dp*f), float32(p*f)
		}
		ds := float32(float32(p*(dp-delta)) * scale)
		k.axpy(a.in(dqkv, j, value), dropped, do)
		k.axpy(dq, ds, a.in(qkv, j, key))
		k.axpy(a.in(dqkv, j, key), ds, q)
	}
}
