package cpu

import (
	"math"
	"sync/atomic"

	"zeroshard/device"
	"zeroshard/kernels"
	"zeroshard/kernels/internal/f32"
)

// Attention works on tiles of scores: queryBlock rows by keyBlock columns. keyBlock is part of the arithmetic (see package ref),
// queryBlock is not; they are equal, so that the diagonal of scores is the diagonal of tiles, and a tile is either beside it or
// below it. A row of a tile has room behind it: its length is no power of two, so that columns spread over the sets of the
// first-level cache.
const (
	keyBlock   = f32.KeyBlock
	queryBlock = keyBlock
	tileStride = keyBlock + 16
	spanBlock  = 4 * queryBlock // queries that use a block of keys before the next is packed
	packedDim  = 128            // longest vectors of which a block can be packed
	slots      = 5              // blocks that are packed at a time
)

const _ = uint(packFloats - 2*tileFloats - slots*keyBlock*packedDim) // must not be negative

// attendJob deals spans of queries (forward) or heads (backward) to the threads as they come free.
type attendJob struct {
	k                         *Kernels
	a                         kernels.Attention
	qkv, out, lse, dqkv, dout []float32
	scale                     float32
	span                      int // queries of an item
	back                      bool
	items                     int
	next                      atomic.Int64
}

// Attention: see kernels.Attention and package ref.
func (k *Kernels) Attention(_ device.Stream, a kernels.Attention) {
	k.needScratch()
	j, heads := &k.jobs.attend, a.Batch*a.Heads
	j.set(a)
	for j.span = spanBlock; j.span > queryBlock && heads*spans(a.Seq, j.span) < 4*len(k.threads); {
		j.span /= 2
	}
	j.back, j.items = false, heads*spans(a.Seq, j.span)
	k.run(min(j.items, len(k.threads)), j)
}

// spans is the number of spans of a sequence.
func spans(seq, span int) int { return (seq + span - 1) / span }

// AttentionBackward: see kernels.AttentionBackward and package ref.
func (k *Kernels) AttentionBackward(_ device.Stream, a kernels.AttentionBackward) {
	k.needScratch()
	j := &k.jobs.attend
	j.set(a.Attention)
	j.dqkv, j.dout = a.DQKV.Float32s()[:len(j.qkv)], a.DOut.Float32s()[:len(j.out)]
	j.back, j.items = true, a.Batch*a.Heads
	k.run(min(j.items, len(k.threads)), j)
}

func (j *attendJob) set(a kernels.Attention) {
	n := a.Batch * a.Seq * a.Heads * a.Dim
	j.a, j.qkv, j.out, j.lse = a, a.QKV.Float32s()[:3*n], a.Out.Float32s()[:n], a.LSE.Float32s()
	j.scale = float32(1 / math.Sqrt(float64(a.Dim)))
	j.next.Store(0)
}

func (j *attendJob) Part(i int) {
	for {
		n := int(j.next.Add(1)) - 1
		if n >= j.items {
			return
		}
		t := tile{attendJob: j, t: &j.k.threads[i]}
		if j.back {
			t.head = n
			t.backward()
			continue
		}
		// Long rows first, so that the last item is a short one.
		heads, last := j.a.Batch*j.a.Heads, spans(j.a.Seq, j.span)-1
		t.head = n % heads
		t.forward((last - n/heads) * j.span)
	}
}

// tile is a block of queries of one head against a block of keys.
type tile struct {
	*attendJob
	t        *thread
	head     int // b·Heads + h
	q0, rows int // queries
	k0, cols int // keys
}

// keys and queries go to a block.
func (t *tile) keys(k0 int)    { t.k0, t.cols = k0, min(keyBlock, t.a.Seq-k0) }
func (t *tile) queries(q0 int) { t.q0, t.rows = q0, min(queryBlock, t.a.Seq-q0) }

// parts of a row of QKV.
const query, key, value = 0, 1, 2

// at is buf (B·T, parts·Heads·Dim) from this head's row t on, in part.
func (t *tile) at(buf []float32, part, parts, row int) matrix {
	b, h := t.head/t.a.Heads, t.head%t.a.Heads
	width := t.a.Heads * t.a.Dim
	return matrix{buf[((b*t.a.Seq+row)*parts+part)*width+h*t.a.Dim:], parts * width, 1}
}

// of is one row of a view of a head.
func (t *tile) of(v matrix, i int) []float32 { return v.x[i*v.row:][:t.a.Dim] }

func (v matrix) transposed() matrix { return matrix{v.x, v.col, v.row} }

// scores is a view of one of the thread's tiles.
func (t *tile) scores(i int) matrix { return matrix{t.t.scores[i], tileStride, 1} }

// pack packs the rows of v, one for each key or query, for products that run over them, in place slot of the thread's pack.
func (t *tile) pack(v matrix, rows, slot int) packed {
	return t.put(packed{b: v, k: rows, n: t.a.Dim}, slot)
}

// packDots packs the rows of v for products that run along them.
func (t *tile) packDots(v matrix, rows, slot int) packed {
	return t.put(packed{b: v.transposed(), k: t.a.Dim, n: rows}, slot)
}

func (t *tile) put(b packed, slot int) packed {
	if t.a.Dim <= packedDim {
		return t.k.path.pack(b, t.t.pieces[slot*keyBlock*packedDim:][:keyBlock*packedDim])
	}
	return b
}

// product is one beside or below the diagonal.
func (t *tile) product(c, a matrix, b packed, add bool) tileProduct {
	return tileProduct{c: c, a: a, b: b, m: t.rows, diagonal: t.q0 == t.k0, add: add}
}

// valid is the number of keys of the tile that row i sees.
func (t *tile) valid(i int) int { return min(t.q0+i+1-t.k0, t.cols) }

// row is the index of row i's number in LSE; its dropout numbers start at row·Seq.
func (t *tile) row(i int) int { return t.head*t.a.Seq + t.q0 + i }

// forward is the softmax over blocks of keys of package ref, for a span of queries from q on. A block of keys is packed once for
// all of them.
func (t *tile) forward(q int) {
	end := min(q+t.span, t.a.Seq)
	for k0 := 0; k0 < end; k0 += keyBlock {
		t.keys(k0)
		keys, values := t.packDots(t.at(t.qkv, key, 3, k0), t.cols, 0), t.pack(t.at(t.qkv, value, 3, k0), t.cols, 1)
		for q0 := max(q, k0); q0 < end; q0 += queryBlock {
			t.queries(q0)
			t.attend(keys, values, q0-q)
		}
	}
}

// attend takes a block of keys into the queries' softmax. Their numbers are from row at of the span on.
func (t *tile) attend(keys, values packed, at int) {
	out, s := t.at(t.out, 0, 1, t.q0), t.scores(0)
	highest, sum := t.t.highest[at:][:t.rows], t.t.sum[at:][:t.rows]
	t.k.path.scores(t.product(s, t.at(t.qkv, query, 3, t.q0), keys, false), t.t.pieces)
	for i := range t.rows {
		if t.k0 == 0 {
			highest[i], sum[i] = float32(math.Inf(-1)), 0
		}
		p := s.x[i*tileStride:][:t.valid(i)]
		next, more := t.k.path.softmax(p, t.scale, highest[i])
		// What was summed under the old maximum shrinks, in most blocks by nothing.
		if shrink := f32.Exp(highest[i] - next); shrink != 1 {
			sum[i] = float32(sum[i] * shrink)
			if t.k0 > 0 {
				t.k.path.scale(t.of(out, i), shrink)
			}
		}
		highest[i], sum[i] = next, sum[i]+more
		if t.a.Drop > 0 {
			t.k.path.mul(p, p, t.keep(i, len(p)))
		}
	}
	t.k.path.lower(t.product(out, s, values, t.k0 > 0), t.t.pieces)
	if t.q0 == t.k0 {
		t.finish(out, highest, sum)
	}
}

// finish divides by the sums.
func (t *tile) finish(out matrix, highest, sum []float32) {
	for i := range t.rows {
		t.k.path.scale(t.of(out, i), 1/sum[i])
		if t.lse != nil {
			t.lse[t.row(i)] = highest[i] + float32(f32.Log(float64(sum[i])))
		}
	}
}

// keep is the n dropout factors of row i, with some more behind them.
func (t *tile) keep(i, n int) []float32 {
	return t.k.path.keep(&t.t.keep, n, t.a.Key, uint64(t.row(i))*uint64(t.a.Seq)+uint64(t.k0), t.a.Drop)
}

// softmax is the portable one, see path.
func softmax(s []float32, factor, highest float32) (next, sum float32) {
	scale(s, factor)
	next = max(highest, f32.Max(s))
	return next, expSum(s, s, next)
}
