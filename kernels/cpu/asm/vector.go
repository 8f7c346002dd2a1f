package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// vectors writes element-wise loops.
func vectors() {
	binary := func(name string, op func(...Op), stream bool) {
		text(name, "func(dst, a, b []float32)")
		v := vectorOf(parts)
		loop(lanes, "dst", []string{"dst", "a", "b"}, func(at addr) {
			for i := range v {
				VMOVUPS(at("a", i*width), v[i])
			}
			for i := range v {
				op(at("b", i*width), v[i], v[i])
			}
			for i := range v {
				if stream {
					VMOVNTPS(v[i], at("dst", i*width))
				} else {
					VMOVUPS(v[i], at("dst", i*width))
				}
			}
		})
		if stream {
			SFENCE()
		}
		ret()
	}
	binary("add", VADDPS, false)
	binary("addStream", VADDPS, true)
	binary("mul", VMULPS, false)

	text("scale", "func(dst []float32, f float32)")
	f := broadcast("f")
	each("dst", []string{"dst"}, func(at addr, e int) {
		v := vector()
		VMULPS(at("dst", e), f, v)
		VMOVUPS(v, at("dst", e))
	})
	ret()

	gelus()
}

// expConstants are those of exps.
var expConstants = []float32{1.44269504, 3 << 22, 0.693359375, -2.12194440e-4, 0.0013814584, 0.008368724, 0.04166839, 0.16666521, 0.49999994, 1,
	expMin, 88.72283, pastExpMax}

const (
	expMin     = -87.33654
	pastExpMax = 89 // above f32.ExpMax
)

// exps is f32.Exp of vectors side by side.
func exps(x ...vec) []vec {
	t, n, r, p := vectorOf(len(x)), vectorOf(len(x)), vectorOf(len(x)), vectorOf(len(x))
	do := func(f func(i int)) {
		for i := range x {
			f(i)
		}
	}
	whole := n
	if wide { // the end needs n again; x cut to where the result is +Inf by itself
		cut := vectorOf(len(x))
		do(func(i int) { VMOVUPS(float(pastExpMax), cut[i]) })
		do(func(i int) { VMINPS(x[i], cut[i], cut[i]) }) // NaN stays
		x, whole = cut, vectorOf(len(x))
	}
	do(func(i int) { VMULPS(float(1.44269504), x[i], t[i]) })
	do(func(i int) { VADDPS(float(3<<22), t[i], t[i]) })
	do(func(i int) { VSUBPS(float(3<<22), t[i], whole[i]) })
	do(func(i int) { VMULPS(float(0.693359375), whole[i], r[i]) })
	do(func(i int) { VSUBPS(r[i], x[i], r[i]) })
	do(func(i int) { VMULPS(float(-2.12194440e-4), whole[i], n[i]) })
	do(func(i int) { VSUBPS(n[i], r[i], r[i]) })
	do(func(i int) { VMULPS(float(0.0013814584), r[i], p[i]) })
	for _, c := range []float32{0.008368724, 0.04166839, 0.16666521} {
		do(func(i int) { VADDPS(float(c), p[i], p[i]) })
		do(func(i int) { VMULPS(r[i], p[i], p[i]) })
	}
	do(func(i int) { VADDPS(float(0.49999994), p[i], p[i]) })
	do(func(i int) { VMULPS(r[i], r[i], n[i]) })
	do(func(i int) { VMULPS(n[i], p[i], p[i]) })
	do(func(i int) { VADDPS(r[i], p[i], p[i]) })
	do(func(i int) { VADDPS(float(1), p[i], p[i]) })
	if wide {
		// Times 2ⁿ; 0 below the limit. NaN stays NaN.
		k := make([]Op, len(x))
		do(func(i int) { k[i] = K(); VCMPPS(notLess, float(expMin), x[i], k[i]) })
		do(func(i int) { VSCALEFPS_Z(whole[i], p[i], k[i], p[i]) })
		return p
	}
	do(func(i int) { VPSLLD(U8(23), t[i], t[i]) })
	do(func(i int) { VPADDD(t[i], p[i], p[i]) })
	// Limits: 0 below, +Inf above, x itself where it is NaN.
	do(func(i int) { clearUnless(notLess, float(expMin), x[i], p[i]) })
	do(func(i int) { replace(greaterThan, float(88.72283), x[i], bits(0x7f800000), p[i]) })
	do(func(i int) { replace(unordered, x[i], x[i], x[i], p[i]) })
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
	text("gelu", "func(y, x []float32)")
	hoist(expConstants...)
	pairs("y", []string{"y", "x"}, func(at addr, e int) {
		x := loads(at, "x", e)
		_, _, ex := geluExp(x)
		for i := range x {
			VADDPS(float(1), ex[i], ex[i])
			VDIVPS(ex[i], x[i], x[i])
			VMOVUPS(x[i], at("y", e+i*width))
		}
	})
	ret()
	for _, value := range []bool{true, false} {
		name, sig, ptrs := "geluSlope", "func(dx, dy, x []float32)", []string{"dx", "dy", "x"}
		if value {
			name, sig, ptrs = "geluGrad", "func(dx, y, dy, x []float32)", []string{"dx", "y", "dy", "x"}
		}
		text(name, sig)
		hoist(expConstants...)
		pairs("dx", ptrs, func(at addr, e int) {
			x := loads(at, "x", e)
			c, q, ex := geluExp(x)
			for i := range x {
				VADDPS(float(1), ex[i], ex[i])
				one, s, u := vector(), vector(), vector()
				VMOVUPS(float(1), one)
				VDIVPS(ex[i], one, s)
				VMULPS(float(geluB3), q[i], q[i])
				VADDPS(float(geluA), q[i], q[i])
				VMULPS(c[i], q[i], q[i]) // t
				VSUBPS(s, one, u)
				VMULPS(s, u, u)
				VMULPS(q[i], u, u)
				VADDPS(u, s, s)
				VMULPS(at("dy", e+i*width), s, s)
				if value {
					VDIVPS(ex[i], x[i], x[i])
					VMOVUPS(x[i], at("y", e+i*width))
				}
				VMOVUPS(s, at("dx", e+i*width))
			}
		})
		ret()
	}
}

// loads is two vectors of a slice.
func loads(at addr, name string, e int) []vec {
	v := vectorOf(2)
	for i := range v {
		VMOVUPS(at(name, e+i*width), v[i])
	}
	return v
}

// geluExp is e = exp(−2u), with c = x cut to ±16 and q = c².
func geluExp(x []vec) (c, q, e []vec) {
	c, q = vectorOf(len(x)), vectorOf(len(x))
	n := vectorOf(len(x))
	for i := range x {
		limit := vector()
		VMOVUPS(float(geluEnd), limit)
		VMINPS(x[i], limit, c[i]) // 16 < x ? 16 : x, so NaN stays
		VMOVUPS(float(-geluEnd), limit)
		VMAXPS(c[i], limit, c[i])
		VMULPS(c[i], c[i], q[i])
		VMULPS(float(geluB), q[i], n[i])
		VADDPS(float(geluA), n[i], n[i])
		VMULPS(c[i], n[i], n[i])
		VXORPS(bits(1<<31), n[i], n[i])
	}
	return c, q, exps(n...)
}
