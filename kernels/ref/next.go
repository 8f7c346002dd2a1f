package ref

import (
	"zeroshard/device"
	"zeroshard/kernels"
	"zeroshard/prng"
)

// EmbedNext: Embed with positions that start where the texts have come to.
func (*Kernels) EmbedNext(_ device.Stream, e kernels.EmbedNext) {
	out, table, pos, tokens, spans := e.Out.Float32s(), e.Table.Float32s(), e.Pos.Float32s(), e.Tokens.Int32s(), e.Spans.Int32s()
	d := e.Dim
	for b := range e.Batch {
		at, n := int(spans[2*b]), int(spans[2*b+1])
		for i := range e.Seq {
			r := b*e.Seq + i
			for j := range d {
				v := float32(0)
				if i < n {
					v = table[int(tokens[r])*d+j]
					if len(pos) > 0 {
						v += pos[(at+i)*d+j]
					}
				}
				out[r*d+j] = v
			}
		}
	}
}

// AttentionNext puts the rows' keys and values in the cache, then lets each query look at it.
func (k *Kernels) AttentionNext(_ device.Stream, a kernels.AttentionNext) {
	rows := kernels.Attention{QKV: a.QKV, Batch: a.Batch, Seq: a.Seq, Heads: a.Heads, Dim: a.Dim}
	cache, size, spans := a.Cache.Float32s(), a.Dim*a.Room, a.Spans.Int32s()
	for b := range a.Batch {
		at, n := int(spans[2*b]), int(spans[2*b+1])
		for h := range a.Heads {
			hd, i := head{&rows, b, h}, b*a.Heads+h
			keys := vectors{cache[i*size:][:size], 1, a.Room}
			values := vectors{cache[(a.Batch*a.Heads+i)*size:][:size], a.Dim, 1}
			for t := range n {
				keys.put(at+t, hd.in(a.QKV.Float32s(), t, key))
				values.put(at+t, hd.in(a.QKV.Float32s(), t, value))
			}
			for t := range a.Seq {
				if out := hd.out(a.Out.Float32s(), t); t < n {
					k.attend(look{hd.in(a.QKV.Float32s(), t, query), out, keys, values, at + t + 1, 0}, 0, prng.Key{})
				} else {
					clear(out)
				}
			}
		}
	}
}

func (v vectors) put(place int, x []float32) {
	for i := range x {
		v.x[place*v.place+i*v.element] = x[i]
	}
}
