package ref

import (
	"zeroshard/device"
	"zeroshard/kernels"
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

// AttentionNext puts the rows' keys and values in the cache, then lays out each head's text again and takes the last rows of Attention over it.
func (k *Kernels) AttentionNext(_ device.Stream, a kernels.AttentionNext) {
	for b := range a.Batch {
		for h := range a.Heads {
			k.next(&a, b, h)
		}
	}
}

func (k *Kernels) next(a *kernels.AttentionNext, b, h int) {
	d, room, spans := a.Dim, a.Room, a.Spans.Int32s()
	at, n := int(spans[2*b]), int(spans[2*b+1])
	rows := kernels.Attention{Batch: a.Batch, Seq: a.Seq, Heads: a.Heads, Dim: d}
	hd, qkv, out := head{&rows, b, h}, a.QKV.Float32s(), a.Out.Float32s()

	cache, size := a.Cache.Float32s(), d*room
	keys, values := cache[(b*a.Heads+h)*size:][:size], cache[(a.Batch*a.Heads+b*a.Heads+h)*size:][:size]
	for i := range n {
		for j := range d {
			keys[j*room+at+i] = hd.in(qkv, i, key)[j]
			values[(at+i)*d+j] = hd.in(qkv, i, value)[j]
		}
	}
	text := make([]float32, (at+n)*3*d) // q, k, v of one head
	for t := range at + n {
		for j := range d {
			text[t*3*d+d+j], text[t*3*d+2*d+j] = keys[j*room+t], values[t*d+j]
		}
	}
	for i := range n {
		copy(text[(at+i)*3*d:][:d], hd.in(qkv, i, query))
	}
	whole := make([]float32, (at+n)*d)
	k.Attention(nil, kernels.Attention{Out: device.Host(whole), QKV: device.Host(text), Batch: 1, Seq: at + n, Heads: 1, Dim: d})
	for i := range a.Seq {
		clear(hd.out(out, i))
		if i < n {
			copy(hd.out(out, i), whole[(at+i)*d:])
		}
	}
}
