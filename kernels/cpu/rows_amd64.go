package cpu

import (
	"math"

	"zeroshard/kernels/internal/f32"
)

// Sums along rows: the loop fills the lanes with whole turns, then the tail goes on in lane 0, as f32.Lanes says.

// fold is f32.Fold.
func (s set) fold(l *[f32.Lanes]float32) float32 {
	if s == avx512 {
		return foldAVX512(l)
	}
	return foldAVX2(l)
}

func (s set) sum(x []float32) float32 {
	var l [f32.Lanes]float32
	n := whole(len(x), rowTurn)
	if s == avx512 {
		sumAVX512(&l, x[:n])
	} else {
		sumAVX2(&l, x[:n])
	}
	for i, v := range x[n:] {
		l[i] += v
	}
	return s.fold(&l)
}

func (s set) dot(x, y []float32) float32 {
	var l [f32.Lanes]float32
	n := whole(len(x), rowTurn)
	y = y[:len(x)]
	if s == avx512 {
		dotAVX512(&l, x[:n], y)
	} else {
		dotAVX2(&l, x[:n], y)
	}
	for i, v := range x[n:] {
		l[i] += float32(v * y[n+i])
	}
	return s.fold(&l)
}

func (s set) max(x []float32) float32 {
	var l [f32.Lanes]float32
	n := whole(len(x), rowTurn)
	for i := range l {
		l[i] = float32(math.Inf(-1))
	}
	if s == avx512 {
		maxAVX512(&l, x[:n])
	} else {
		maxAVX2(&l, x[:n])
	}
	for i, v := range x[n:] {
		if v > l[i] {
			l[i] = v
		}
	}
	return f32.Max(l[:])
}

func (s set) expSum(dst, x []float32, m float32) float32 {
	var l [f32.Lanes]float32
	n := whole(len(x), rowTurn)
	if dst == nil {
		if s == avx512 {
			expSumOnlyAVX512(&l, x[:n], m)
		} else {
			expSumOnlyAVX2(&l, x[:n], m)
		}
	} else {
		dst = dst[:len(x)]
		if s == avx512 {
			expSumAVX512(&l, dst, x[:n], m)
		} else {
			expSumAVX2(&l, dst, x[:n], m)
		}
	}
	if rest := x[n:]; len(rest) > 0 {
		// A whole turn with −Inf behind the tail: its exp adds 0.
		var tail [rowTurn]float32
		for i := copy(tail[:], rest); i < rowTurn; i++ {
			tail[i] = float32(math.Inf(-1))
		}
		if s == avx512 {
			expSumAVX512(&l, tail[:], tail[:], m)
		} else {
			expSumAVX2(&l, tail[:], tail[:], m)
		}
		if dst != nil {
			copy(dst[n:], tail[:])
		}
	}
	return s.fold(&l)
}

func (s set) normSquares(x []float32, mean float32) float32 {
	var l [f32.Lanes]float32
	n := whole(len(x), rowTurn)
	if s == avx512 {
		normSquaresAVX512(&l, x[:n], mean)
	} else {
		normSquaresAVX2(&l, x[:n], mean)
	}
	for i, v := range x[n:] {
		v -= mean
		l[i] += float32(v * v)
	}
	return s.fold(&l)
}

func (s set) normSums(dy, x, w []float32, c normConst) (g, gx float32) {
	var l [2 * f32.Lanes]float32
	n := whole(len(dy), rowTurn)
	x, w = x[:len(dy)], w[:len(dy)]
	if s == avx512 {
		normSumsAVX512(&l, dy, x[:n], w, &c)
	} else {
		normSumsAVX2(&l, dy, x[:n], w, &c)
	}
	for i, v := range dy[n:] {
		v = float32(v * w[n+i])
		l[i] += v
		l[f32.Lanes+i] += float32(v * float32((x[n+i]-c.mean)*c.rstd))
	}
	return s.fold((*[f32.Lanes]float32)(l[:])), s.fold((*[f32.Lanes]float32)(l[f32.Lanes:]))
}

func (s set) normApply(y, x, w, b []float32, c normConst) {
	n := whole(len(y), turn)
	x, w = x[:len(y)], w[:len(y)]
	if b == nil {
		if s == avx512 {
			normScaleAVX512(y[:n], x, w, &c)
		} else {
			normScaleAVX2(y[:n], x, w, &c)
		}
		normApply(y[n:], x[n:], w[n:], nil, c)
		return
	}
	b = b[:len(y)]
	if s == avx512 {
		normApplyAVX512(y[:n], x, w, b, &c)
	} else {
		normApplyAVX2(y[:n], x, w, b, &c)
	}
	normApply(y[n:], x[n:], w[n:], b[n:], c)
}

func (s set) normBack(dx, dy, x, w []float32, c normConst) {
	n := whole(len(dx), turn)
	dy, x, w = dy[:len(dx)], x[:len(dx)], w[:len(dx)]
	if c.add {
		if s == avx512 {
			normBackAddAVX512(dx[:n], dy, x, w, &c)
		} else {
			normBackAddAVX2(dx[:n], dy, x, w, &c)
		}
	} else {
		if s == avx512 {
			normBackAVX512(dx[:n], dy, x, w, &c)
		} else {
			normBackAVX2(dx[:n], dy, x, w, &c)
		}
	}
	normBack(dx[n:], dy[n:], x[n:], w[n:], c)
}

func (s set) normParams(dw, db, dy, x []float32, c normConst) {
	n := whole(len(dw), turn)
	dy, x = dy[:len(dw)], x[:len(dw)]
	if db == nil {
		if s == avx512 {
			normWeightAVX512(dw[:n], dy, x, &c)
		} else {
			normWeightAVX2(dw[:n], dy, x, &c)
		}
		normParams(dw[n:], nil, dy[n:], x[n:], c)
		return
	}
	db = db[:len(dw)]
	if s == avx512 {
		normParamsAVX512(dw[:n], db, dy, x, &c)
	} else {
		normParamsAVX2(dw[:n], db, dy, x, &c)
	}
	normParams(dw[n:], db[n:], dy[n:], x[n:], c)
}

// vecSoftmax fills the last turn with −Inf, whose exp adds 0.
func (s set) softmax(x []float32, scale, highest float32) (next, sum float32) {
	n := len(x)
	x = x[:whole(n+rowTurn-1, rowTurn)]
	for i := n; i < len(x); i++ {
		x[i] = float32(math.Inf(-1))
	}
	if s == avx512 {
		return softmaxAVX512(x, scale, highest)
	}
	return softmaxAVX2(x, scale, highest)
}

func (s set) scoreBack(p, ds, keep []float32, c scoreConst) {
	n := whole(len(p)+rowTurn-1, rowTurn)
	p, ds = p[:n], ds[:n]
	if keep == nil {
		if s == avx512 {
			scoreBackAVX512(p, ds, &c)
		} else {
			scoreBackAVX2(p, ds, &c)
		}
	} else {
		if s == avx512 {
			scoreBackDropAVX512(p, ds, keep[:n], &c)
		} else {
			scoreBackDropAVX2(p, ds, keep[:n], &c)
		}
	}
}
