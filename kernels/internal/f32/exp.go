package f32

import "math"

// Constants of Exp, for those who write it again in assembly.
const (
	ExpMin = -87.33654  // below: 0. e^ExpMin is the last value not below 2⁻¹²⁶.
	ExpMax = 88.72283   // above: +Inf
	log2e  = 1.44269504 // 1/ln 2
	// ln 2 in two parts. The first has 9 bits, so n·ln2hi is exact for |n| ≤ 128, and so is x − n·ln2hi.
	ln2hi = 0.693359375
	ln2lo = -2.12194440e-4
	// round rounds to the nearest integer when added to and subtracted from |x| < 2²², and leaves that integer in the
	// low bits of the sum.
	round = 3 << 22

	// (eʳ − 1 − r)/r² on |r| ≤ ln2/2: minimax in the relative error of eʳ, 0.05 units of the last place.
	exp0 = 0.49999994
	exp1 = 0.16666521
	exp2 = 0.04166839
	exp3 = 0.008368724
	exp4 = 0.0013814584
)

// Exp returns eˣ, at most 1 unit of the last place off. Results below 2⁻¹²⁶ are 0.
//
// x = n·ln2 + r, eˣ = 2ⁿ·eʳ. Adding n to the exponent field is the multiplication by 2ⁿ: the result is a normal
// number between the two limits, and 2¹²⁸·eʳ with eʳ < 1 needs no step in between.
func Exp(x float32) float32 {
	switch {
	case x != x:
		return x
	case x < ExpMin:
		return 0
	case x > ExpMax:
		return float32(math.Inf(1))
	}
	shifted := float32(x*log2e) + round
	n := shifted - round
	r := x - float32(n*ln2hi)
	r -= float32(n * ln2lo)
	p := float32(exp4*r) + exp3
	p = float32(p*r) + exp2
	p = float32(p*r) + exp1
	p = float32(p*r) + exp0
	p = float32(p*float32(r*r)) + r
	return math.Float32frombits(math.Float32bits(p+1) + math.Float32bits(shifted)<<23)
}
