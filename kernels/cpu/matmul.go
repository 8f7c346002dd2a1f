package cpu

import (
	"zeroshard/device"
	"zeroshard/kernels"
)

// matmulJob splits a product by columns of C, by rows where there are few columns: a thread packs only its own part of B.
type matmulJob struct {
	k       *Kernels
	p       product
	parts   int
	columns bool
}

// MatMul: see kernels.MatMul and package ref.
func (k *Kernels) MatMul(_ device.Stream, m kernels.MatMul) {
	k.needScratch()
	p := product{c: matrix{m.C.Float32s()[:m.M*m.N], m.N, 1}, a: matrix{m.A.Float32s()[:m.M*m.K], m.K, 1},
		b: matrix{m.B.Float32s()[:m.K*m.N], m.N, 1}, m: m.M, n: m.N, k: m.K, add: m.Add}
	if m.TransA {
		p.a.row, p.a.col = 1, m.M
	}
	if m.TransB {
		p.b.row, p.b.col = 1, m.K
	}
	if m.Bias.Len > 0 {
		p.bias = m.Bias.Float32s()[:m.N]
	}
	j := &k.jobs.matmul
	j.p, j.parts, j.columns = p, 1, m.N >= 64*len(k.threads)
	if m.M*m.N*m.K >= 1<<15 { // some microseconds: worth waking a thread
		j.parts = len(k.threads)
	}
	k.run(j.parts, j)
}

func (j *matmulJob) Part(i int) {
	p := j.p
	if j.columns {
		lo, hi := share(i, j.parts, p.n, 16)
		p.c, p.b, p.n = p.c.from(0, lo), p.b.from(0, lo), hi-lo
		if p.bias != nil {
			p.bias = p.bias[lo:hi]
		}
	} else {
		lo, hi := share(i, j.parts, p.m, 6)
		p.c, p.a, p.m = p.c.from(lo, 0), p.a.from(lo, 0), hi-lo
	}
	if p.m > 0 && p.n > 0 {
		j.k.path.multiply(p, j.k.threads[i].pack)
	}
}

// columnsJob splits sums down columns.
type columnsJob struct {
	k       *Kernels
	db, dy  []float32
	rows, n int
	add     bool
}

// columnChunk is the columns of one part: rows of this length are read one after the other.
const columnChunk = 512

// BiasGrad: see kernels.Net.
func (k *Kernels) BiasGrad(_ device.Stream, db, dy kernels.Buffer, rows, n int, add bool) {
	j := &k.jobs.columns
	j.db, j.dy, j.rows, j.n, j.add = db.Float32s()[:n], dy.Float32s()[:rows*n], rows, n, add
	k.run((n+columnChunk-1)/columnChunk, j)
}

func (j *columnsJob) Part(i int) {
	lo, hi := i*columnChunk, min((i+1)*columnChunk, j.n)
	db := j.db[lo:hi]
	if !j.add {
		clear(db)
	}
	if j.rows > 0 {
		j.k.path.addRows(db, j.dy[lo:], j.n, j.rows)
	}
}
