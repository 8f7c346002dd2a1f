package cpu

import (
	"math"
	"sync/atomic"

	"zeroshard/device"
	"zeroshard/kernels"
	"zeroshard/kernels/internal/f32"
)

// EmbedNext: see kernels.EmbedNext. Its work is too little to split.
func (k *Kernels) EmbedNext(_ device.Stream, e kernels.EmbedNext) {
	out, table, pos, tokens, spans := e.Out.Float32s(), e.Table.Float32s(), e.Pos.Float32s(), e.Tokens.Int32s(), e.Spans.Int32s()
	d := e.Dim
	for b := range e.Batch {
		at, n := int(spans[2*b]), int(spans[2*b+1])
		for i := range e.Seq {
			r := b*e.Seq + i
			to := out[r*d:][:d]
			if i >= n {
				clear(to)
			} else if row := table[int(tokens[r])*d:][:d]; pos == nil {
				copy(to, row)
			} else {
				k.path.add(to, row, pos[(at+i)*d:][:d])
			}
		}
	}
}

// nextJob deals the heads of AttentionNext to the threads as they come free. Keys lie in the cache by columns and values by rows, so that
// both products of a single query run along rows of their right operand, and nothing is packed.
type nextJob struct {
	k                    *Kernels
	a                    kernels.AttentionNext
	qkv, out, cache      []float32
	spans                []int32
	scale                float32
	items                int
	next                 atomic.Int64
	headFloats, perToken int
}

// AttentionNext: see kernels.AttentionNext and package ref.
func (k *Kernels) AttentionNext(_ device.Stream, a kernels.AttentionNext) {
	k.needScratch()
	j, width := &k.next, a.Heads*a.Dim
	n := a.Batch * a.Seq * width
	j.a, j.qkv, j.out, j.spans = a, a.QKV.Float32s()[:3*n], a.Out.Float32s()[:n], a.Spans.Int32s()[:2*a.Batch]
	j.cache, j.headFloats, j.perToken = a.Cache.Float32s()[:2*a.Batch*a.Room*width], a.Room*a.Dim, width
	j.scale, j.items = float32(1/math.Sqrt(float64(a.Dim))), a.Batch*a.Heads
	j.next.Store(0)
	parts := 1
	if n*a.Room >= 1<<15 { // some microseconds: worth waking a thread
		parts = min(j.items, len(k.threads))
	}
	k.run(parts, j)
}

func (j *nextJob) Part(i int) {
	for {
		n := int(j.next.Add(1)) - 1
		if n >= j.items {
			return
		}
		b, h := n/j.a.Heads, n%j.a.Heads
		lane := nextLane{nextJob: j, t: &j.k.threads[i], at: int(j.spans[2*b]), rows: int(j.spans[2*b+1])}
		lane.in = matrix{j.qkv[b*j.a.Seq*3*j.perToken+h*j.a.Dim:], 3 * j.perToken, 1}
		lane.to = matrix{j.out[b*j.a.Seq*j.perToken+h*j.a.Dim:], j.perToken, 1}
		lane.keys = matrix{j.cache[n*j.headFloats:][:j.headFloats], j.a.Room, 1}
		lane.values = matrix{j.cache[(j.items+n)*j.headFloats:][:j.headFloats], j.a.Dim, 1}
		lane.append()
		for q := 0; q < lane.rows; q += queryBlock {
			lane.attend(q, min(queryBlock, lane.rows-q))
		}
	}
}

// nextLane is one head of one sequence.
type nextLane struct {
	*nextJob
	t            *thread
	at, rows     int    // the first row's place, and rows that are no padding
	in, to       matrix // the head's q, and behind it k and v; its outputs
	keys, values matrix // (dim, room), (room, dim)
}

// append puts keys and values into the cache, and zeros into the outputs of padding.
func (l *nextLane) append() {
	d := l.a.Dim
	for i := range l.rows {
		k, v := l.in.x[i*l.in.row+l.perToken:][:d], l.in.x[i*l.in.row+2*l.perToken:][:d]
		for j, x := range k {
			l.keys.x[j*l.keys.row+l.at+i] = x
		}
		copy(l.values.x[(l.at+i)*d:], v)
	}
	for i := l.rows; i < l.a.Seq; i++ {
		clear(l.to.x[i*l.to.row:][:d])
	}
}

// attend is the softmax over blocks of keys of package ref, for m rows from q on.
func (l *nextLane) attend(q, m int) {
	first, d := l.at+q, l.a.Dim
	highest, sum := l.t.highest[:m], l.t.sum[:m]
	s := matrix{l.t.scores[0], tileStride, 1}
	for k0 := 0; k0 < first+m; k0 += keyBlock {
		from := max(0, k0-first) // rows before see none of these keys
		cols := min(keyBlock, first+m-k0)
		l.k.path.multiply(product{c: s.from(from, 0), a: l.in.from(q+from, 0), b: l.keys.from(0, k0), m: m - from, n: cols, k: d}, l.t.pieces)
		for i := from; i < m; i++ {
			if k0 == 0 {
				highest[i], sum[i] = float32(math.Inf(-1)), 0
			}
			next, more := l.k.path.softmax(s.x[i*tileStride:][:min(first+i+1-k0, cols)], l.scale, highest[i])
			// What was summed under the old maximum shrinks, in most blocks by nothing.
			if shrink := f32.Exp(highest[i] - next); shrink != 1 {
				sum[i] = float32(sum[i] * shrink)
				if k0 > 0 {
					l.k.path.scale(l.to.x[(q+i)*l.to.row:][:d], shrink)
				}
			}
			highest[i], sum[i] = next, sum[i]+more
		}
		l.weigh(product{c: l.to.from(q+from, 0), a: s.from(from, 0), b: l.values.from(k0, 0), m: m - from, n: d, k: cols, add: k0 > 0}, first+from+1-k0)
	}
	for i := range m {
		l.k.path.scale(l.to.x[(q+i)*l.to.row:][:d], 1/sum[i])
	}
}

// weigh adds up values by their probabilities. Row i sees seen + i of the product's links.
func (l *nextLane) weigh(p product, seen int) {
	multiply, pack := l.k.path.multiply, l.t.pieces
	if seen >= p.k {
		multiply(p, pack)
		return
	}
	p.begin()
	band{-never, seen}.parts(p.m, p.k, bandRows, func(i, m, from, to int) {
		if from < to {
			multiply(product{c: p.c.from(i, 0), a: p.a.from(i, from), b: p.b.from(from, 0), m: m, n: p.n, k: to - from, add: true}, pack)
		}
	})
}
