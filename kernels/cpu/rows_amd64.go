package cpu

import (
	"math"

	"zeroshard/kernels/internal/f32"
)

// Sums along rows: the loop fills the lanes with whole turns, then the tail goes on in lane 0, as f32.Lanes says.

func vecSum(x []float32) float32 {
	var l [f32.Lanes]float32
	n := whole(len(x), rowTurn)
	sumAVX2(&l, x[:n])
	for i, v := range x[n:] {
		l[i] += v
	}
	return foldAVX2(&l)
}

func vecDot(x, y []float32) float32 {
	var l [f32.Lanes]float32
	n := whole(len(x), rowTurn)
	y = y[:len(x)]
	dotAVX2(&l, x[:n], y)
	for i, v := range x[n:] {
		l[i] += float32(v * y[n+i])
	}
	return foldAVX2(&l)
}

func vecMax(x []float32) float32 {
	var l [f32.Lanes]float32
	n := whole(len(x), rowTurn)
	for i := range l {
		l[i] = float32(math.Inf(-1))
	}
	maxAVX2(&l, x[:n])
	for i, v := range x[n:] {
		if v > l[i] {
			l[i] = v
		}
	}
	return f32.Max(l[:])
}

func vecExpSum(dst, x []float32, m float32) float32 {
	var l [f32.Lanes]float32
	n := whole(len(x), rowTurn)
	if dst == nil {
		expSumOnlyAVX2(&l, x[:n], m)
	} else {
		dst = dst[:len(x)]
		expSumAVX2(&l, dst, x[:n], m)
	}
	if rest := x[n:]; len(rest) > 0 {
		// A whole turn with −Inf behind the tail: its exp adds 0.
		var tail [rowTurn]float32
		for i := copy(tail[:], rest); i < rowTurn; i++ {
			tail[i] = float32(math.Inf(-1))
		}
		expSumAVX2(&l, tail[:], tail[:], m)
		if dst != nil {
			copy(dst[n:], tail[:])
		}
	}
	return foldAVX2(&l)
}

func vecNormSquares(x []float32, mean float32) float32 {
	var l [f32.Lanes]float32
	n := whole(len(x), rowTurn)
	normSquaresAVX2(&l, x[:n], mean)
	for i, v := range x[n:] {
		v -= mean
		l[i] += float32(v * v)
	}
	return foldAVX2(&l)
}

func vecNormSums(dy, x, w []float32, c normConst) (g, gx float32) {
	var l [2 * f32.Lanes]float32
	n := whole(len(dy), rowTurn)
	x, w = x[:len(dy)], w[:len(dy)]
	normSumsAVX2(&l, dy, x[:n], w, &c)
	for i, v := range dy[n:] {
		v = float32(v * w[n+i])
		l[i] += v
		l[f32.Lanes+i] += float32(v * float32((x[n+i]-c.mean)*c.rstd))
	}
	return foldAVX2((*[f32.Lanes]float32)(l[:])), foldAVX2((*[f32.Lanes]float32)(l[f32.Lanes:]))
}

func vecNormApply(y, x, w, b []float32, c normConst) {
	n := whole(len(y), turn)
	x, w = x[:len(y)], w[:len(y)]
	if b == nil {
		normScaleAVX2(y[:n], x, w, &c)
		normApply(y[n:], x[n:], w[n:], nil, c)
		return
	}
	b = b[:len(y)]
	normApplyAVX2(y[:n], x, w, b, &c)
	normApply(y[n:], x[n:], w[n:], b[n:], c)
}

func vecNormBack(dx, dy, x, w []float32, c normConst) {
	n := whole(len(dx), turn)
	dy, x, w = dy[:len(dx)], x[:len(dx)], w[:len(dx)]
	if c.add {
		normBackAddAVX2(dx[:n], dy, x, w, &c)
	} else {
		normBackAVX2(dx[:n], dy, x, w, &c)
	}
	normBack(dx[n:], dy[n:], x[n:], w[n:], c)
}

func vecNormParams(dw, db, dy, x []float32, c normConst) {
	n := whole(len(dw), turn)
	dy, x = dy[:len(dw)], x[:len(dw)]
	if db == nil {
		normWeightAVX2(dw[:n], dy, x, &c)
		normParams(dw[n:], nil, dy[n:], x[n:], c)
		return
	}
	db = db[:len(dw)]
	normParamsAVX2(dw[:n], db, dy, x, &c)
	normParams(dw[n:], db[n:], dy[n:], x[n:], c)
}

// vecSoftmax fills the last turn with −Inf, whose exp adds 0.
func vecSoftmax(s []float32, scale, highest float32) (next, sum float32) {
	n := len(s)
	s = s[:whole(n+rowTurn-1, rowTurn)]
	for i := n; i < len(s); i++ {
		s[i] = float32(math.Inf(-1))
	}
	return softmaxAVX2(s, scale, highest)
}

func vecScoreBack(p, ds, keep []float32, c scoreConst) {
	n := whole(len(p)+turn-1, turn)
	p, ds = p[:n], ds[:n]
	if keep == nil {
		scoreBackAVX2(p, ds, &c)
	} else {
		scoreBackDropAVX2(p, ds, keep[:n], &c)
	}
}
