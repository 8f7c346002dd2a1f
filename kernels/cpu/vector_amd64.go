package cpu

import (
	"unsafe"

	"zeroshard/kernels/internal/f32"
)

// Elements of one turn.
const (
	turn    = 16
	rowTurn = f32.Lanes
)

func (s set) add(dst, a, b []float32) {
	n := whole(len(dst), rowTurn)
	a, b = a[:len(dst)], b[:len(dst)]
	if s == avx512 {
		addAVX512(dst[:n], a, b)
	} else {
		addAVX2(dst[:n], a, b)
	}
	add(dst[n:], a[n:], b[n:])
}

// addStream streams where dst begins at a cache line.
func (s set) addStream(dst, a, b []float32) {
	n := whole(len(dst), rowTurn)
	if n == 0 || !atLine(unsafe.Pointer(unsafe.SliceData(dst))) {
		s.add(dst, a, b)
		return
	}
	a, b = a[:len(dst)], b[:len(dst)]
	if s == avx512 {
		addStreamAVX512(dst[:n], a, b)
	} else {
		addStreamAVX2(dst[:n], a, b)
	}
	add(dst[n:], a[n:], b[n:])
}

func (s set) mul(dst, a, b []float32) {
	n := whole(len(dst), rowTurn)
	a, b = a[:len(dst)], b[:len(dst)]
	if s == avx512 {
		mulAVX512(dst[:n], a, b)
	} else {
		mulAVX2(dst[:n], a, b)
	}
	mul(dst[n:], a[n:], b[n:])
}

func (s set) scale(dst []float32, f float32) {
	n := whole(len(dst), turn)
	if s == avx512 {
		scaleAVX512(dst[:n], f)
	} else {
		scaleAVX2(dst[:n], f)
	}
	scale(dst[n:], f)
}

// gelu and geluGrad run the tail in a whole turn of its own: an exp in plain Go takes as long as several turns.
func (s set) gelu(y, x []float32) {
	n := whole(len(y), rowTurn)
	x = x[:len(y)]
	s.geluTurns(y[:n], x)
	if n < len(y) {
		var t [rowTurn]float32
		copy(t[:], x[n:])
		s.geluTurns(t[:], t[:])
		copy(y[n:], t[:])
	}
}

func (s set) geluTurns(y, x []float32) {
	if s == avx512 {
		geluAVX512(y, x)
	} else {
		geluAVX2(y, x)
	}
}

func (s set) geluGrad(dx, y, dy, x []float32) {
	n := whole(len(dx), rowTurn)
	dy, x = dy[:len(dx)], x[:len(dx)]
	if y == nil {
		s.geluSlopeTurns(dx[:n], dy, x)
	} else {
		y = y[:len(dx)]
		s.geluGradTurns(dx[:n], y, dy, x)
	}
	if n < len(dx) {
		var d, v, t [rowTurn]float32
		copy(d[:], dy[n:])
		copy(t[:], x[n:])
		s.geluGradTurns(d[:], v[:], d[:], t[:])
		copy(dx[n:], d[:])
		if y != nil {
			copy(y[n:], v[:])
		}
	}
}

func (s set) geluSlopeTurns(dx, dy, x []float32) {
	if s == avx512 {
		geluSlopeAVX512(dx, dy, x)
	} else {
		geluSlopeAVX2(dx, dy, x)
	}
}

func (s set) geluGradTurns(dx, y, dy, x []float32) {
	if s == avx512 {
		geluGradAVX512(dx, y, dy, x)
	} else {
		geluGradAVX2(dx, y, dy, x)
	}
}

func (s set) adamw(p, g, m, v []float32, c adamwConst) {
	n := whole(len(p), turn)
	g, m, v = g[:len(p)], m[:len(p)], v[:len(p)]
	if s == avx512 {
		adamwAVX512(p[:n], g, m, v, &c)
	} else {
		adamwAVX2(p[:n], g, m, v, &c)
	}
	adamw(p[n:], g[n:], m[n:], v[n:], c)
}

func (s set) sgd(p, g, m []float32, c sgdConst) {
	n := whole(len(p), turn)
	g = g[:len(p)]
	if m == nil {
		if s == avx512 {
			sgdPlainAVX512(p[:n], g, &c)
		} else {
			sgdPlainAVX2(p[:n], g, &c)
		}
		sgd(p[n:], g[n:], nil, c)
		return
	}
	m = m[:len(p)]
	if s == avx512 {
		sgdAVX512(p[:n], g, m, &c)
	} else {
		sgdAVX2(p[:n], g, m, &c)
	}
	sgd(p[n:], g[n:], m[n:], c)
}

// squaresTurn is the grains that are summed side by side.
const squaresTurn = 4

func (s set) squares(sums []float64, x []float32) {
	n := whole(len(x)/f32.Grain, squaresTurn)
	if n > 0 {
		squaresAVX2(sums[:n], x[:n*f32.Grain])
	}
	squares(sums[n:], x[n*f32.Grain:])
}

// rowsTurn is the rows that addRows takes at a time.
const rowsTurn = 8

func (s set) addRows(dst, x []float32, ld, rows int) {
	n, r := whole(len(dst), rowTurn), 0
	for ; r+rowsTurn <= rows && n > 0; r += rowsTurn {
		_ = x[(r+rowsTurn-1)*ld:][:n]
		if s == avx512 {
			addRowsAVX512(dst[:n], x[r*ld:], 4*uintptr(ld))
		} else {
			addRowsAVX2(dst[:n], x[r*ld:], 4*uintptr(ld))
		}
	}
	for ; r < rows; r++ {
		s.add(dst[:n], dst[:n], x[r*ld:][:n])
	}
	addRows(dst[n:], x[n:], ld, rows)
}
