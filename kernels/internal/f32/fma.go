package f32

import "math"

// FMA returns a·b + c, rounded once: what a vector unit's fused multiply-add gives.
//
// The product of two float32 is exact in float64. The sum is rounded twice, to float64 and to float32, which is right only if
// the first rounding does not land on a tie of the second. Rounding the first to odd (where it is inexact, the last bit is
// set) keeps it off every tie: Boldo and Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding
// to odd", 2008.
func FMA(a, b, c float32) float32 {
	p, q := float64(a)*float64(b), float64(c)
	s := p + q
	// The error of s, exactly (Knuth's two-sum).
	t := s - p
	e := (p - (s - t)) + (q - t)
	if e != 0 && !math.IsInf(s, 0) && e == e {
		if u := math.Float64bits(s); u&1 == 0 {
			// Towards e: away from zero if e has the sign of s, else towards zero. s is not 0, as e is not.
			if (e > 0) == (s > 0) {
				u++
			} else {
				u--
			}
			s = math.Float64frombits(u)
		}
	}
	return float32(s)
}
