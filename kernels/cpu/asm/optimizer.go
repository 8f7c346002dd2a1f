package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// optimizers writes the loops of AdamW and SGD. Constants are a struct of float32.
func optimizers() {
	adamw()
	sgd()
}

// scalars broadcasts the first n floats of the struct at parameter c.
func scalars(n int) []vec {
	c := Load(Param("c"), GP64())
	v := vectorOf(n)
	for i := range v {
		VBROADCASTSS(Mem{Base: c, Disp: 4 * i}, v[i])
	}
	return v
}

// flush is f32.Flush. NaN stays.
func flush(v, t vec) {
	VANDPS(bits(0x7fffffff), v, t)
	clearUnless(notLess, float(0x1p-126), t, v)
}

func hoistFlush() { hoist(math.Float32frombits(0x7fffffff), 0x1p-126) }

func adamw() {
	text("adamw", "func(p, g, m, v []float32, c *float32)")
	hoistFlush()
	c := scalars(10)
	scale, beta1, rest1, beta2, rest2, r1, r2, eps, decay, lr := c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7], c[8], c[9]
	each("p", []string{"p", "g", "m", "v"}, func(at addr, e int) {
		g, m, v, t := vector(), vector(), vector(), vector()
		VMULPS(at("g", e), scale, g)
		VMULPS(at("m", e), beta1, m)
		VMULPS(rest1, g, t)
		VADDPS(t, m, m)
		flush(m, t)
		VMOVUPS(m, at("m", e))
		VMULPS(at("v", e), beta2, v)
		VMULPS(rest2, g, t)
		VMULPS(g, t, t)
		VADDPS(t, v, v)
		flush(v, t)
		VMOVUPS(v, at("v", e))
		VMULPS(r2, v, v)
		VSQRTPS(v, v)
		VADDPS(eps, v, v)
		VMULPS(r1, m, m)
		VDIVPS(v, m, m)
		VMOVUPS(at("p", e), g)
		VMULPS(decay, g, t)
		VADDPS(m, t, t)
		VMULPS(lr, t, t)
		VSUBPS(t, g, g)
		VMOVUPS(g, at("p", e))
	})
	ret()
}

func sgd() {
	for _, momentum := range []bool{true, false} {
		name, sig, ptrs := "sgdPlain", "func(p, g []float32, c *float32)", []string{"p", "g"}
		if momentum {
			name, sig, ptrs = "sgd", "func(p, g, m []float32, c *float32)", []string{"p", "g", "m"}
		}
		text(name, sig)
		hoistFlush()
		c := scalars(4)
		each("p", ptrs, func(at addr, e int) {
			p, s, t := vector(), vector(), vector()
			VMOVUPS(at("p", e), p)
			VMULPS(at("g", e), c[0], s)
			VMULPS(c[2], p, t)
			VADDPS(t, s, s)
			if momentum {
				VMULPS(at("m", e), c[1], t)
				VADDPS(s, t, s)
				flush(s, t)
				VMOVUPS(s, at("m", e))
			}
			VMULPS(c[3], s, s)
			VSUBPS(s, p, p)
			VMOVUPS(p, at("p", e))
		})
		ret()
	}
}
