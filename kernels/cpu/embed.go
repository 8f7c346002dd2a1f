package cpu

import (
	"zeroshard/device"
	"zeroshard/kernels"
)

// embedJob splits Embed by rows and EmbedBackward by columns, where rows of one table entry must follow each other.
type embedJob struct {
	k               *Kernels
	out, table, pos []float32
	tokens          []int32
	dim, seq        int
	back            bool
}

func (k *Kernels) embed(e kernels.Embed, back bool) *embedJob {
	j := &k.jobs.embed
	n := e.Batch * e.Seq
	j.out, j.table, j.pos, j.tokens = e.Out.Float32s()[:n*e.Dim], e.Table.Float32s(), e.Pos.Float32s(), e.Tokens.Int32s()[:n]
	j.dim, j.seq, j.back = e.Dim, e.Seq, back
	return j
}

// Embed: see kernels.Net.
func (k *Kernels) Embed(_ device.Stream, e kernels.Embed) {
	k.run(rowParts(e.Batch*e.Seq, e.Dim), k.embed(e, false))
}

// EmbedBackward: see kernels.Net.
func (k *Kernels) EmbedBackward(_ device.Stream, e kernels.Embed) {
	k.run((e.Dim+backChunk-1)/backChunk, k.embed(e, true))
}

// backChunk is the columns of one part of EmbedBackward.
const backChunk = 128

func (j *embedJob) Part(i int) {
	if j.back {
		j.backward(i*backChunk, min((i+1)*backChunk, j.dim))
		return
	}
	lo, hi := rowCut(i, len(j.tokens), j.dim)
	for t := lo; t < hi; t++ {
		out, row := j.out[t*j.dim:][:j.dim], j.table[int(j.tokens[t])*j.dim:][:j.dim]
		if j.pos == nil {
			copy(out, row)
		} else {
			j.k.path.add(out, row, j.pos[t%j.seq*j.dim:][:j.dim])
		}
	}
}

func (j *embedJob) backward(lo, hi int) {
	for t, token := range j.tokens {
		g := j.out[t*j.dim+lo : t*j.dim+hi]
		row := j.table[int(token)*j.dim:][lo:hi]
		j.k.path.add(row, row, g)
		if j.pos != nil {
			pos := j.pos[t%j.seq*j.dim:][lo:hi]
			j.k.path.add(pos, pos, g)
		}
	}
}

// rowParts is the number of parts of work on rows of d elements; part i is rows rowCut(i, rows, d).
func rowParts(rows, d int) int {
	per := rowsPerPart(d)
	return (rows + per - 1) / per
}

func rowCut(i, rows, d int) (lo, hi int) {
	per := rowsPerPart(d)
	return i * per, min((i+1)*per, rows)
}

func rowsPerPart(d int) int { return max(1, chunk/4/max(d, 1)) }

// PickRows: see kernels.Net. Its work is too little to split.
func (k *Kernels) PickRows(_ device.Stream, dst, x, targets kernels.Buffer, seq, d int) {
	if seq == 0 {
		return
	}
	out, in, want := dst.Float32s(), x.Float32s(), targets.Int32s()
	for b := range len(want) / seq {
		last := seq - 1
		for t := seq - 1; t >= 0; t-- {
			if want[b*seq+t] >= 0 {
				last = t
				break
			}
		}
		copy(out[b*d:(b+1)*d], in[(b*seq+last)*d:])
	}
}
