package f32

import "math"

// Log returns ln x for a finite normal x > 0, within 2 units of float64's last place; +Inf for +Inf; NaN for
// anything else. It is float64 because a row's loss is: one call per row.
//
// x = 2ᵏ·m with √½ ≤ m < √2; ln m = 2·atanh(s), s = (m−1)/(m+1), |s| ≤ 0.1716, by its series in s². Unlike math.Log it is the
// same on every platform: the compiler may fuse no operation.
func Log(x float64) float64 {
	const ln2hi, ln2lo = 0x1.62e42feep-1, 0x1.a39ef35793c76p-33 // ln2hi has 32 bits: k·ln2hi is exact
	if !(x >= 0x1p-1022) || x > math.MaxFloat64 {
		if x > 0 && x > math.MaxFloat64 {
			return x
		}
		return math.NaN()
	}
	b := math.Float64bits(x)
	k := int(b>>52) - 1023
	m := math.Float64frombits(b&(1<<52-1) | 1023<<52)
	if m >= math.Sqrt2 {
		m /= 2
		k++
	}
	s := (m - 1) / (m + 1)
	z := float64(s * s)
	p := 0.0
	for n := 21; n >= 3; n -= 2 { // the next term is below 2⁻⁵⁶ of the first
		p = float64(p*z) + 1/float64(n)
	}
	p = float64(float64(2*s) * float64(z*p))
	kf := float64(k)
	return float64(kf*ln2hi) + (float64(2*s) + (p + float64(kf*ln2lo)))
}
