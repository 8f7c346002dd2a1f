package cpu

import (
	"zeroshard/device"
	"zeroshard/kernels"
	"zeroshard/kernels/internal/f32"
)

// normJob splits LayerNorm by rows.
type normJob struct {
	k                 *Kernels
	y, x, w, b, stats []float32
	rows, dim         int
	eps               float32
	known             bool
}

// LayerNorm: see kernels.LayerNorm and package ref.
func (k *Kernels) LayerNorm(_ device.Stream, l kernels.LayerNorm) {
	j := &k.jobs.norm
	n := l.Rows * l.Dim
	j.y, j.x, j.w, j.stats = l.Y.Float32s()[:n], l.X.Float32s()[:n], l.W.Float32s()[:l.Dim], l.Stats.Float32s()[:2*l.Rows]
	j.b, j.rows, j.dim, j.eps, j.known = l.B.Float32s(), l.Rows, l.Dim, l.Eps, l.Known
	k.run(rowParts(l.Rows, l.Dim), j)
}

func (j *normJob) Part(i int) {
	lo, hi := rowCut(i, j.rows, j.dim)
	path := j.k.path
	for r := lo; r < hi; r++ {
		x, st := j.x[r*j.dim:(r+1)*j.dim], j.stats[2*r:2*r+2]
		if !j.known {
			n := float32(j.dim)
			st[0] = path.sum(x) / n
			st[1] = 1 / f32.Sqrt(path.norm.squares(x, st[0])/n+j.eps)
		}
		path.norm.apply(j.y[r*j.dim:(r+1)*j.dim], x, j.w, j.b, normConst{mean: st[0], rstd: st[1]})
	}
}

// normBackJob is LayerNormBackward in two passes over the pool: dw and db by columns, then dx, which may be dy, by rows.
type normBackJob struct {
	k            *Kernels
	l            kernels.LayerNormBackward
	dx, dy, x, w []float32
	dw, db       []float32
	stats        []float32
	columns      bool
}

// normConst is the scalars of one row, in the order in which assembly reads them.
type normConst struct {
	mean, rstd, meanG, meanGX float32
	add                       bool
}

// LayerNormBackward: see kernels.LayerNormBackward and package ref.
func (k *Kernels) LayerNormBackward(_ device.Stream, l kernels.LayerNormBackward) {
	j := &k.jobs.normBack
	n := l.Rows * l.Dim
	j.l = l
	j.dx, j.dy, j.x, j.w = l.DX.Float32s()[:n], l.DY.Float32s()[:n], l.X.Float32s()[:n], l.W.Float32s()[:l.Dim]
	j.dw, j.db, j.stats = l.DW.Float32s()[:l.Dim], l.DB.Float32s(), l.Stats.Float32s()[:2*l.Rows]
	j.columns = true
	k.run((l.Dim+columnChunk-1)/columnChunk, j)
	j.columns = false
	k.run(rowParts(l.Rows, l.Dim), j)
}

func (j *normBackJob) Part(i int) {
	if j.columns {
		j.params(i*columnChunk, min((i+1)*columnChunk, j.l.Dim))
		return
	}
	d, norm := j.l.Dim, &j.k.path.norm
	lo, hi := rowCut(i, j.l.Rows, d)
	for r := lo; r < hi; r++ {
		dy, x := j.dy[r*d:(r+1)*d], j.x[r*d:(r+1)*d]
		c := normConst{mean: j.stats[2*r], rstd: j.stats[2*r+1], add: j.l.AddX}
		g, gx := norm.sums(dy, x, j.w, c)
		c.meanG, c.meanGX = g/float32(d), gx/float32(d)
		norm.back(j.dx[r*d:(r+1)*d], dy, x, j.w, c)
	}
}

func (j *normBackJob) params(lo, hi int) {
	dw, d := j.dw[lo:hi], j.l.Dim
	var db []float32
	if j.db != nil {
		db = j.db[lo:hi]
	}
	if !j.l.AddW {
		clear(dw)
		clear(db)
	}
	for r := range j.l.Rows {
		j.k.path.norm.params(dw, db, j.dy[r*d+lo:r*d+hi], j.x[r*d+lo:r*d+hi], normConst{mean: j.stats[2*r], rstd: j.stats[2*r+1]})
	}
}

func normSquares(x []float32, mean float32) float32 {
	var l [f32.Lanes]float32
	for i, v := range x {
		v -= mean
		l[i%f32.Lanes] += float32(v * v)
	}
	return f32.Fold(&l)
}

func normApply(y, x, w, b []float32, c normConst) {
	x, w = x[:len(y)], w[:len(y)]
	for i, v := range x {
		v = float32(float32((v-c.mean)*c.rstd) * w[i])
		if b != nil {
			v += b[i]
		}
		y[i] = v
	}
}

func normSums(dy, x, w []float32, c normConst) (g, gx float32) {
	var lg, lx [f32.Lanes]float32
	x, w = x[:len(dy)], w[:len(dy)]
	for i, v := range dy {
		v = float32(v * w[i])
		lg[i%f32.Lanes] += v
		lx[i%f32.Lanes] += float32(v * float32((x[i]-c.mean)*c.rstd))
	}
	return f32.Fold(&lg), f32.Fold(&lx)
}

func normBack(dx, dy, x, w []float32, c normConst) {
	dy, x, w = dy[:len(dx)], x[:len(dx)], w[:len(dx)]
	for i, v := range dy {
		xhat := float32((x[i] - c.mean) * c.rstd)
		v = float32(c.rstd * (float32(v*w[i]) - c.meanG - float32(xhat*c.meanGX)))
		if c.add {
			v = dx[i] + v
		}
		dx[i] = v
	}
}

func normParams(dw, db, dy, x []float32, c normConst) {
	dy, x = dy[:len(dw)], x[:len(dw)]
	for i, v := range dy {
		dw[i] += float32(v * float32((x[i]-c.mean)*c.rstd))
		if db != nil {
			db[i] += v
		}
	}
}
