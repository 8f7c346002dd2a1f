package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// softmax scales a row of scores in place, and raises highest to the largest; then it is exp(s − next) in place, and the sum of
// that in the order of f32.Lanes.
func softmax() {
	text("softmax", "func(s []float32, scale, highest float32) (next, sum float32)")
	hoist(expConstants...)
	factor, m := broadcast("scale"), broadcast("highest")
	acc := vectorOf(parts)
	for _, a := range acc {
		VMOVUPS(bits(0xff800000), a)
	}
	loopNamed("Max", lanes, "s", []string{"s"}, func(at addr) {
		for i, a := range acc {
			v := vector()
			VMULPS(at("s", i*width), factor, v)
			VMOVUPS(v, at("s", i*width))
			VMAXPS(a, v, a)
		}
	})
	fold(acc, VMAXPS)
	VBROADCASTSS(acc[0].AsX(), acc[0])
	VMAXPS(acc[0], m, m)
	zero(acc...)
	loopNamed("Exp", lanes, "s", []string{"s"}, func(at addr) {
		for i := 0; i < parts; i += 2 {
			v := loads(at, "s", i*width)
			for _, v := range v {
				VSUBPS(m, v, v)
			}
			for h, v := range exps(v...) {
				VMOVUPS(v, at("s", (i+h)*width))
				VADDPS(v, acc[i+h], acc[i+h])
			}
		}
	})
	fold(acc, VADDPS)
	Store(m.AsX(), Return("next"))
	Store(acc[0].AsX(), Return("sum"))
	ret()
}

// scoreBack turns scores p and the gradients ds of dropped probabilities into probabilities p = exp(p·scale − lse), dropped again
// where there is keep, and gradients of scores ds = p·(ds·keep − delta)·scale.
func scoreBack() {
	for _, drop := range []bool{false, true} {
		name, sig, ptrs := "scoreBack", "func(p, ds []float32, c *float32)", []string{"p", "ds"}
		if drop {
			name, sig, ptrs = "scoreBackDrop", "func(p, ds, keep []float32, c *float32)", []string{"p", "ds", "keep"}
		}
		text(name, sig)
		hoist(expConstants...)
		c := scalars(3)
		scale, lse, delta := c[0], c[1], c[2]
		pairs("p", ptrs, func(at addr, e int) {
			p := vectorOf(2)
			for i, p := range p {
				VMULPS(at("p", e+i*width), scale, p)
				VSUBPS(lse, p, p)
			}
			for i, p := range exps(p...) {
				d, e := vector(), e+i*width
				VMOVUPS(at("ds", e), d)
				if drop {
					VMULPS(at("keep", e), d, d)
				}
				VSUBPS(delta, d, d)
				VMULPS(p, d, d)
				VMULPS(scale, d, d)
				VMOVUPS(d, at("ds", e))
				if drop {
					VMULPS(at("keep", e), p, p)
				}
				VMOVUPS(p, at("p", e))
			}
		})
		ret()
	}
}

// foldLanes is f32.Fold.
func foldLanes() {
	text("fold", "func(lanes *[32]float32) float32")
	acc := loadLanes(Load(Param("lanes"), GP64()), 0)
	fold(acc, VADDPS)
	Store(acc[0].AsX(), ReturnIndex(0))
	ret()
}

// fold is f32.Fold with op, of the lanes in acc; the result is in the lowest lane of acc[0].
func fold(acc []vec, op func(...Op)) {
	for n := len(acc) / 2; n > 0; n /= 2 {
		for i := range n {
			op(acc[i+n], acc[i], acc[i])
		}
	}
	half, low := XMM(), acc[0].AsX()
	lowest(acc[0], half, op)
	op(half, low, low)
	VPERMILPS(U8(0x4e), low, half)
	op(half, low, low)
	VPERMILPS(U8(0xb1), low, half)
	op(half, low, low)
}

// lowest folds v with op until two quarters of the width of XMM are left: one in v, one in up.
func lowest(v, up vec, op func(...Op)) {
	if !wide {
		VEXTRACTF128(U8(1), v, up)
		return
	}
	half := YMM()
	VEXTRACTF64X4(U8(1), v, half)
	op(half, v.AsY(), v.AsY())
	VEXTRACTF64X2(U8(1), v.AsY(), up)
}
