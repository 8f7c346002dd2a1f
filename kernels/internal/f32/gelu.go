package f32

// GELU in its tanh form is x·σ(2u) with u = √(2/π)(x + 0.044715x³), since (1+tanh u)/2 = σ(2u) = 1/(1+e⁻²ᵘ): one exp, and no
// cancellation where tanh is near −1. Beyond |x| = geluEnd, σ(2u) is 0 or 1 to the last bit; cutting x there keeps
// x² from overflowing against a 0.
const (
	geluA   = 2 * 0.7978845608028654 // 2√(2/π)
	geluB   = geluA * 0.044715       // 2u = x(geluA + geluB·x²)
	geluB3  = 3 * geluB              // d(2u)/dx = geluA + geluB3·x²
	geluEnd = 16
)

// GELU returns x·σ(2u).
func GELU(x float32) float32 {
	c := cut(x)
	q := float32(c * c)
	return x / (1 + Exp(float32(-c*(float32(q*geluB)+geluA))))
}

// GELUGrad returns GELU and its derivative σ + x·σ(1−σ)·d(2u)/dx, with e = e⁻²ᵘ and σ = 1/(1+e). Where e is +Inf, σ is 0.
func GELUGrad(x float32) (value, slope float32) {
	c := cut(x)
	q := float32(c * c)
	e := Exp(float32(-c * (float32(q*geluB) + geluA)))
	s := 1 / (1 + e)
	t := float32(c * (float32(q*geluB3) + geluA))
	return x / (1 + e), s + float32(float32(s*(1-s))*t)
}

func cut(x float32) float32 {
	switch {
	case x > geluEnd:
		return geluEnd
	case x < -geluEnd:
		return -geluEnd
	}
	return x
}
