package prng

import (
	"math"
	"math/bits"
)

// Box and Muller's transform, with every float64 operation rounded explicitly: the functions of package math are written in
// assembly on some platforms, and the compiler may fuse a product and a sum on others, so neither would give the same bits
// everywhere. The series below are good to about 1e-14, far below float32's rounding.

// boxMuller returns two independent standard normal numbers from two independent words:
// √(−2 ln u)·(cos 2πv, sin 2πv) with u = (a+1)/2³² in (0, 1], v = b/2³².
func boxMuller(a, b uint32) (float32, float32) {
	r := math.Sqrt(-2 * lnWord(a)) // correctly rounded by IEEE 754
	sin, cos := sinCosTurn(b)
	return float32(r * cos), float32(r * sin)
}

// lnWord is ln((a+1)/2³²). With n = a+1 = 2ᵉ·m, m in (√½, √2): ln n = e·ln 2 + 2·artanh((m−1)/(m+1)).
func lnWord(a uint32) float64 {
	n := uint64(a) + 1
	e := bits.Len64(n) - 1
	m := float64(n) / float64(uint64(1)<<e)
	if m > math.Sqrt2 {
		m *= 0.5
		e++
	}
	s := (m - 1) / (m + 1)
	y := float64(s * s)
	p := mad(1./17, y, 1./15)
	p = mad(p, y, 1./13)
	p = mad(p, y, 1./11)
	p = mad(p, y, 1./9)
	p = mad(p, y, 1./7)
	p = mad(p, y, 1./5)
	p = mad(p, y, 1./3)
	p = mad(p, y, 1)
	return float64(float64(e-32)*math.Ln2) + float64(float64(2*s)*p)
}

// sinCosTurn is the sine and cosine of b/2³² of a full turn. The angle is folded exactly, in integers, to an eighth of a turn
// around the nearest quarter.
func sinCosTurn(b uint32) (sin, cos float64) {
	quarter := (b + 1<<29) >> 30
	x := float64(int32(b-quarter<<30)) * (2 * math.Pi / (1 << 32)) // in [−π/4, π/4]
	y := float64(x * x)
	sin = mad(1./6227020800, y, -1./39916800)
	sin = mad(sin, y, 1./362880)
	sin = mad(sin, y, -1./5040)
	sin = mad(sin, y, 1./120)
	sin = mad(sin, y, -1./6)
	sin = mad(sin, y, 1)
	sin *= x
	cos = mad(-1./87178291200, y, 1./479001600)
	cos = mad(cos, y, -1./3628800)
	cos = mad(cos, y, 1./40320)
	cos = mad(cos, y, -1./720)
	cos = mad(cos, y, 1./24)
	cos = mad(cos, y, -1./2)
	cos = mad(cos, y, 1)
	switch quarter % 4 {
	case 1:
		return cos, -sin
	case 2:
		return -sin, -cos
	case 3:
		return -cos, sin
	}
	return sin, cos
}

// mad is r·x + c in two roundings: the conversion keeps the compiler from fusing them. A series is a chain of these, highest
// coefficient first (Horner).
func mad(r, x, c float64) float64 { return float64(r*x) + c }
