package cpu

import (
	"golang.org/x/sys/cpu"

	"zeroshard/device"
	"zeroshard/kernels/internal/f32"
)

// paths are those that this machine can run, the best first.
func paths() []*path {
	if x := &cpu.X86; x.HasAVX2 && x.HasFMA && x.HasF16C {
		return []*path{avx2(), portable()}
	}
	return []*path{portable()}
}

// avx2 needs AVX2, FMA and F16C. A loop takes whole turns of vectors; the tail runs in the portable one, which gives the
// same bits.
func avx2() *path {
	return &path{
		name:     "avx2",
		multiply: multiplyAVX2,
		pack:     packAVX2, scores: scoresAVX2, lower: lowerAVX2, upper: upperAVX2,
		softmax: vecSoftmax, scoreBack: vecScoreBack, keep: vecKeep, dropout: vecDropout,
		add: vecAdd, scale: vecScale, mul: vecMul,
		gelu: vecGELU, geluGrad: vecGELUGrad,
		adamw: vecAdamW, sgd: vecSGD,
		squares: vecSquares,
		sum:     vecSum, dot: vecDot, max: vecMax, expSum: vecExpSum,
		widen: vecWiden, narrow: vecNarrow,
		norm: normPath{squares: vecNormSquares, apply: vecNormApply, sums: vecNormSums, back: vecNormBack, params: vecNormParams},
	}
}

// Elements of one turn.
const (
	turn    = 8
	rowTurn = f32.Lanes
)

// whole is n rounded down to turns.
func whole(n, turn int) int { return n / turn * turn }

func vecAdd(dst, a, b []float32) {
	n := whole(len(dst), rowTurn)
	a, b = a[:len(dst)], b[:len(dst)]
	addAVX2(dst[:n], a, b)
	add(dst[n:], a[n:], b[n:])
}

func vecMul(dst, a, b []float32) {
	n := whole(len(dst), rowTurn)
	a, b = a[:len(dst)], b[:len(dst)]
	mulAVX2(dst[:n], a, b)
	mul(dst[n:], a[n:], b[n:])
}

func vecScale(dst []float32, f float32) {
	n := whole(len(dst), turn)
	scaleAVX2(dst[:n], f)
	scale(dst[n:], f)
}

func vecGELU(y, x []float32) {
	n := whole(len(y), turn)
	x = x[:len(y)]
	geluAVX2(y[:n], x)
	gelu(y[n:], x[n:])
}

func vecGELUGrad(dx, y, dy, x []float32) {
	n := whole(len(dx), turn)
	dy, x = dy[:len(dx)], x[:len(dx)]
	if y == nil {
		geluSlopeAVX2(dx[:n], dy, x)
		geluGrad(dx[n:], nil, dy[n:], x[n:])
		return
	}
	y = y[:len(dx)]
	geluGradAVX2(dx[:n], y, dy, x)
	geluGrad(dx[n:], y[n:], dy[n:], x[n:])
}

func vecAdamW(p, g, m, v []float32, c adamwConst) {
	n := whole(len(p), turn)
	g, m, v = g[:len(p)], m[:len(p)], v[:len(p)]
	adamwAVX2(p[:n], g, m, v, &c)
	adamw(p[n:], g[n:], m[n:], v[n:], c)
}

func vecSGD(p, g, m []float32, c sgdConst) {
	n := whole(len(p), turn)
	g = g[:len(p)]
	if m == nil {
		sgdPlainAVX2(p[:n], g, &c)
		sgd(p[n:], g[n:], nil, c)
		return
	}
	m = m[:len(p)]
	sgdAVX2(p[:n], g, m, &c)
	sgd(p[n:], g[n:], m[n:], c)
}

func vecSquares(sums []float64, x []float32) {
	n := len(x) / f32.Grain
	if n > 0 {
		squaresAVX2(sums[:n], x[:n*f32.Grain])
	}
	squares(sums[n:], x[n*f32.Grain:])
}

func vecWiden(dst []float32, src []uint16, from device.DType) {
	n := whole(len(dst), turn)
	src = src[:len(dst)]
	switch from {
	case device.BF16:
		widenBF16AVX2(dst[:n], src)
	case device.F16:
		widenF16AVX2(dst[:n], src)
	default:
		n = 0
	}
	widen(dst[n:], src[n:], from)
}

func vecNarrow(dst []uint16, src []float32, to device.DType) {
	n := whole(len(dst), turn)
	src = src[:len(dst)]
	switch to {
	case device.BF16:
		narrowBF16AVX2(dst[:n], src)
	case device.F16:
		narrowF16AVX2(dst[:n], src)
	default:
		n = 0
	}
	narrow(dst[n:], src[n:], to)
}
