package ref

import (
	"zeroshard/device"
	"zeroshard/kernels"
	"zeroshard/kernels/internal/f32"
)

// LayerNorm: mean and variance in two passes, each a row sum.
func (*Kernels) LayerNorm(_ device.Stream, l kernels.LayerNorm) {
	y, x, w, b, stats := l.Y.Float32s(), l.X.Float32s(), l.W.Float32s(), l.B.Float32s(), l.Stats.Float32s()
	d := l.Dim
	for i := range l.Rows {
		row, out, st := x[i*d:(i+1)*d], y[i*d:(i+1)*d], stats[2*i:2*i+2]
		if !l.Known {
			st[0], st[1] = meanRstd(row, l.Eps)
		}
		for j, v := range row {
			v = float32(float32((v-st[0])*st[1]) * w[j])
			if len(b) > 0 {
				v += b[j]
			}
			out[j] = v
		}
	}
}

func meanRstd(x []float32, eps float32) (mean, rstd float32) {
	n := float32(len(x))
	mean = f32.Sum(x) / n
	variance := f32.SumOf(len(x), func(i int) float32 { d := x[i] - mean; return float32(d * d) }) / n
	return mean, 1 / f32.Sqrt(variance+eps)
}

// LayerNormBackward: with x̂ = (x−mean)·rstd and g = dy·w,
//
//	dx = rstd·(g − mean(g) − x̂·mean(g·x̂))   dw = Σ dy·x̂   db = Σ dy
func (*Kernels) LayerNormBackward(_ device.Stream, l kernels.LayerNormBackward) {
	dx, dy, x, w := l.DX.Float32s(), l.DY.Float32s(), l.X.Float32s(), l.W.Float32s()
	stats := l.Stats.Float32s()
	d, n := l.Dim, float32(l.Dim)
	columns(l)
	for i := range l.Rows {
		mean, rstd := stats[2*i], stats[2*i+1]
		xhat := func(j int) float32 { return float32((x[i*d+j] - mean) * rstd) }
		g := func(j int) float32 { return float32(dy[i*d+j] * w[j]) }
		meanG := f32.SumOf(d, g) / n
		meanGX := f32.SumOf(d, func(j int) float32 { return float32(g(j) * xhat(j)) }) / n
		for j := range d {
			v := float32(rstd * (g(j) - meanG - float32(xhat(j)*meanGX)))
			put(&dx[i*d+j], v, l.AddX) // last use of dy here, which may be dx
		}
	}
}

// columns is dw and db: chains over rows ascending.
func columns(l kernels.LayerNormBackward) {
	dy, x, stats, dw, db := l.DY.Float32s(), l.X.Float32s(), l.Stats.Float32s(), l.DW.Float32s(), l.DB.Float32s()
	d := l.Dim
	if !l.AddW {
		clear(dw)
		clear(db)
	}
	for i := range l.Rows {
		mean, rstd := stats[2*i], stats[2*i+1]
		for j := range d {
			g := dy[i*d+j]
			dw[j] += float32(g * float32((x[i*d+j]-mean)*rstd))
			if len(db) > 0 {
				db[j] += g
			}
		}
	}
}
