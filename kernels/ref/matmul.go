package ref

import (
	"zeroshard/device"
	"zeroshard/kernels"
)

// MatMul: one chain per element of C.
func (k *Kernels) MatMul(_ device.Stream, m kernels.MatMul) {
	c, a, b, bias := m.C.Float32s(), m.A.Float32s(), m.B.Float32s(), m.Bias.Float32s()
	aRow, aCol := m.K, 1 // A(i,p) is a[i·aRow + p·aCol]
	if m.TransA {
		aRow, aCol = 1, m.M
	}
	bRow, bCol := m.N, 1 // B(p,j) is b[p·bRow + j·bCol]
	if m.TransB {
		bRow, bCol = 1, m.K
	}
	for i := range m.M {
		for j := range m.N {
			acc := start(c[i*m.N+j], bias, j, m.Add)
			for p := range m.K {
				acc = k.mulAdd(acc, a[i*aRow+p*aCol], b[p*bRow+j*bCol])
			}
			c[i*m.N+j] = acc
		}
	}
}

// start is where an element's chain begins.
func start(c float32, bias []float32, j int, add bool) float32 {
	switch {
	case add && len(bias) > 0:
		return c + bias[j]
	case add:
		return c
	case len(bias) > 0:
		return bias[j]
	}
	return 0
}

// BiasGrad: a chain per column, from db if add.
func (*Kernels) BiasGrad(_ device.Stream, db, dy kernels.Buffer, rows, n int, add bool) {
	d, y := db.Float32s(), dy.Float32s()
	if !add {
		clear(d[:n])
	}
	for i := range rows {
		for j := range n {
			d[j] += y[i*n+j]
		}
	}
}
