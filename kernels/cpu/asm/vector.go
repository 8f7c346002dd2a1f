package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// vectors writes element-wise loops.
func vectors() {
	binary := func(name string, op func(...Op)) {
		TEXT(name+suffix, NOSPLIT, "func(dst, a, b []float32)")
		v := vectorOf(4)
		loop(width*4, "dst", []string{"dst", "a", "b"}, func(at addr) {
			for i := range v {
				VMOVUPS(at("a", i*width), v[i])
			}
			for i := range v {
				op(at("b", i*width), v[i], v[i])
			}
			for i := range v {
				VMOVUPS(v[i], at("dst", i*width))
			}
		})
		ret()
	}
	binary("add", VADDPS)
	binary("mul", VMULPS)

	TEXT("scale"+suffix, NOSPLIT, "func(dst []float32, f float32)")
	f, v := broadcast("f"), vector()
	loop(width, "dst", []string{"dst"}, func(at addr) {
		VMULPS(at("dst", 0), f, v)
		VMOVUPS(v, at("dst", 0))
	})
	ret()

	gelus()
}

// exp is f32.Exp.
func exp(x vec) vec {
	t, n, r, p := vector(), vector(), vector(), vector()
	VMULPS(float(1.44269504), x, t)
	VADDPS(float(3<<22), t, t)
	VSUBPS(float(3<<22), t, n)
	VMULPS(float(0.693359375), n, r)
	VSUBPS(r, x, r)
	VMULPS(float(-2.12194440e-4), n, n)
	VSUBPS(n, r, r)
	VMULPS(float(0.0013814584), r, p)
	for _, c := range []float32{0.008368724, 0.04166839, 0.16666521} {
		VADDPS(float(c), p, p)
		VMULPS(r, p, p)
	}
	VADDPS(float(0.49999994), p, p)
	VMULPS(r, r, n)
	VMULPS(n, p, p)
	VADDPS(r, p, p)
	VADDPS(float(1), p, p)
	VPSLLD(U8(23), t, t)
	VPADDD(t, p, p)
	// Limits: 0 below, +Inf above, x itself where it is NaN.
	VCMPPS(notLess, float(-87.33654), x, t)
	VANDPS(t, p, p)
	VCMPPS(greaterThan, float(88.72283), x, t)
	VBLENDVPS(t, bits(0x7f800000), p, p)
	VCMPPS(unordered, x, x, t)
	VBLENDVPS(t, x, p, p)
	return p
}

const (
	geluA   = 2 * 0.7978845608028654
	geluB   = geluA * 0.044715
	geluB3  = 3 * geluB
	geluEnd = 16
)

// gelus writes f32.GELU and f32.GELUGrad.
func gelus() {
	TEXT("gelu"+suffix, NOSPLIT, "func(y, x []float32)")
	loop(width, "y", []string{"y", "x"}, func(at addr) {
		x := vector()
		VMOVUPS(at("x", 0), x)
		_, _, e := geluExp(x)
		VADDPS(float(1), e, e)
		VDIVPS(e, x, x)
		VMOVUPS(x, at("y", 0))
	})
	ret()
	for _, value := range []bool{true, false} {
		name, sig, ptrs := "geluSlope", "func(dx, dy, x []float32)", []string{"dx", "dy", "x"}
		if value {
			name, sig, ptrs = "geluGrad", "func(dx, y, dy, x []float32)", []string{"dx", "y", "dy", "x"}
		}
		TEXT(name+suffix, NOSPLIT, sig)
		loop(width, "dx", ptrs, func(at addr) {
			x := vector()
			VMOVUPS(at("x", 0), x)
			c, q, e := geluExp(x)
			VADDPS(float(1), e, e)
			one, s, u := vector(), vector(), vector()
			VMOVUPS(float(1), one)
			VDIVPS(e, one, s)
			VMULPS(float(geluB3), q, q)
			VADDPS(float(geluA), q, q)
			VMULPS(c, q, q) // t
			VSUBPS(s, one, u)
			VMULPS(s, u, u)
			VMULPS(q, u, u)
			VADDPS(u, s, s)
			VMULPS(at("dy", 0), s, s)
			if value {
				VDIVPS(e, x, x)
				VMOVUPS(x, at("y", 0))
			}
			VMOVUPS(s, at("dx", 0))
		})
		ret()
	}
}

// geluExp is e = exp(−2u), with c = x cut to ±16 and q = c².
func geluExp(x vec) (c, q, e vec) {
	c, q, n := vector(), vector(), vector()
	limit := vector()
	VMOVUPS(float(geluEnd), limit)
	VMINPS(x, limit, c) // 16 < x ? 16 : x, so NaN stays
	VMOVUPS(float(-geluEnd), limit)
	VMAXPS(c, limit, c)
	VMULPS(c, c, q)
	VMULPS(float(geluB), q, n)
	VADDPS(float(geluA), n, n)
	VMULPS(c, n, n)
	VXORPS(bits(1<<31), n, n)
	return c, q, exp(n)
}
