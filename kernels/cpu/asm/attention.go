package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// softmax scales a row of scores in place, and raises highest to the largest; then it is exp(s − next) in place, and the sum of
// that in the order of f32.Lanes.
func softmax() {
	TEXT("softmax"+suffix, NOSPLIT, "func(s []float32, scale, highest float32) (next, sum float32)")
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
		for i, a := range acc {
			v := vector()
			VMOVUPS(at("s", i*width), v)
			VSUBPS(m, v, v)
			v = exp(v)
			VMOVUPS(v, at("s", i*width))
			VADDPS(v, a, a)
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
		TEXT(name+suffix, NOSPLIT, sig)
		c := scalars(3)
		scale, lse, delta := c[0], c[1], c[2]
		loop(width, "p", ptrs, func(at addr) {
			p, d := vector(), vector()
			VMULPS(at("p", 0), scale, p)
			VSUBPS(lse, p, p)
			p = exp(p)
			VMOVUPS(at("ds", 0), d)
			if drop {
				VMULPS(at("keep", 0), d, d)
			}
			VSUBPS(delta, d, d)
			VMULPS(p, d, d)
			VMULPS(scale, d, d)
			VMOVUPS(d, at("ds", 0))
			if drop {
				VMULPS(at("keep", 0), p, p)
			}
			VMOVUPS(p, at("p", 0))
		})
		ret()
	}
}

// foldLanes is f32.Fold.
func foldLanes() {
	TEXT("fold"+suffix, NOSPLIT, "func(lanes *[32]float32) float32")
	acc := loadLanes(Load(Param("lanes"), GP64()), 0)
	fold(acc, VADDPS)
	Store(acc[0].AsX(), ReturnIndex(0))
	ret()
}

// fold is f32.Fold with op, of the lanes in acc; the result is in the lowest lane of acc[0].
func fold(acc []vec, op func(...Op)) {
	op(acc[2], acc[0], acc[0])
	op(acc[3], acc[1], acc[1])
	op(acc[1], acc[0], acc[0])
	half, low := XMM(), acc[0].AsX()
	VEXTRACTF128(U8(1), acc[0], half)
	op(half, low, low)
	VPERMILPS(U8(0x4e), low, half)
	op(half, low, low)
	VPERMILPS(U8(0xb1), low, half)
	op(half, low, low)
}
