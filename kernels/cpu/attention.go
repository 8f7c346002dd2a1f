package cpu

import (
	"math"
	"sync/atomic"

	"zeroshard/device"
	"zeroshard/kernels"
	"zeroshard/kernels/internal/f32"
)

// Attention works on tiles of scores: queryBlock rows by keyBlock columns. keyBlock is part of the arithmetic (see
// package ref), queryBlock is not.
const (
	queryBlock = 64
	keyBlock   = f32.KeyBlock
)

// attendJob deals tiles' rows (forward) or heads (backward) to the threads as they come free.
type attendJob struct {
	k                         *Kernels
	a                         kernels.Attention
	qkv, out, lse, dqkv, dout []float32
	scale                     float32
	back                      bool
	items                     int
	next                      atomic.Int64
}

// Attention: see kernels.Attention and package ref.
func (k *Kernels) Attention(_ device.Stream, a kernels.Attention) {
	k.needScratch()
	j := &k.jobs.attend
	j.set(a)
	j.back, j.items = false, a.Batch*a.Heads*((a.Seq+queryBlock-1)/queryBlock)
	k.run(min(j.items, len(k.threads)), j)
}

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
	blocks := (j.a.Seq + queryBlock - 1) / queryBlock
	for {
		n := int(j.next.Add(1)) - 1
		if n >= j.items {
			return
		}
		t := tile{attendJob: j, t: &j.k.threads[i]}
		if j.back {
			t.head = n
			t.backward()
		} else {
			// Long rows first, so that the last item is a short one.
			t.head, t.q0 = n%(j.a.Batch*j.a.Heads), (blocks-1-n/(j.a.Batch*j.a.Heads))*queryBlock
			t.rows = min(queryBlock, j.a.Seq-t.q0)
			t.forward()
		}
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
func (t *tile) scores(i int) matrix { return matrix{t.t.scores[i], keyBlock, 1} }

// dots sets dst to the products of each query's row of x with each key's row of y. Above the diagonal it is never read.
func (t *tile) dots(dst, x, y matrix) {
	t.k.path.multiply(product{c: dst, a: x, b: y.transposed(), m: t.rows, n: t.cols, k: t.a.Dim}, t.t.pack)
}

// score is the tile's scaled scores.
func (t *tile) score(dst matrix) {
	t.dots(dst, t.at(t.qkv, query, 3, t.q0), t.at(t.qkv, key, 3, t.k0))
	for i := range t.rows {
		t.k.path.scale(dst.x[i*keyBlock:][:t.valid(i)], t.scale)
	}
}

// valid is the number of keys of the tile that row i sees.
func (t *tile) valid(i int) int { return min(max(t.q0+i+1-t.k0, 0), t.cols) }

// row is the index of row i's number in LSE; its dropout numbers start at row·Seq.
func (t *tile) row(i int) int { return t.head*t.a.Seq + t.q0 + i }

// forward is the softmax over blocks of keys of package ref, for all rows of the tile at once.
func (t *tile) forward() {
	out, s := t.at(t.out, 0, 1, t.q0), t.scores(0)
	highest, sum := &t.t.rows[0], &t.t.rows[1]
	for i := range t.rows {
		highest[i], sum[i] = float32(math.Inf(-1)), 0
		clear(t.of(out, i))
	}
	for t.k0 = 0; t.k0 < t.q0+t.rows; t.k0 += keyBlock {
		t.cols = min(keyBlock, t.q0+t.rows-t.k0)
		t.score(s)
		for i := range t.rows {
			if n := t.valid(i); n > 0 {
				t.softmax(s.x[i*keyBlock:][:n], t.of(out, i), i)
			}
		}
		t.lower(out, s, t.at(t.qkv, value, 3, t.k0))
	}
	for i := range t.rows {
		t.k.path.scale(t.of(out, i), 1/sum[i])
		if t.lse != nil {
			t.lse[t.row(i)] = highest[i] + float32(f32.Log(float64(sum[i])))
		}
	}
}

// softmax turns one row's scores of a block into the factors of its values.
func (t *tile) softmax(s, out []float32, i int) {
	highest, sum, path := &t.t.rows[0][i], &t.t.rows[1][i], t.k.path
	next := max(*highest, path.max(s))
	shrink := f32.Exp(*highest - next)
	*sum = float32(*sum*shrink) + path.expSum(s, s, next)
	*highest = next
	if t.k0 > 0 {
		path.scale(out, shrink)
	}
	t.drop(s, i)
}

// drop multiplies a row of the tile by its dropout factors.
func (t *tile) drop(s []float32, i int) {
	if t.a.Drop > 0 {
		keep(t.t.keep[:len(s)], t.a.Key, uint64(t.row(i))*uint64(t.a.Seq)+uint64(t.k0), t.a.Drop)
		t.k.path.mul(s, s, t.t.keep[:len(s)])
	}
}

// lower adds to the queries' rows of c: those of x, one for each key, with the factors of the tile up to the diagonal.
func (t *tile) lower(c, scores, x matrix) {
	t.k.path.banded(product{c: c, a: scores, b: x, m: t.rows, n: t.a.Dim, k: t.cols}, band{-never, t.q0 + 1 - t.k0}, t.t.pack)
}
