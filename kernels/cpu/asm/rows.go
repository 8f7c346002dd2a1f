package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// rows writes sums along rows. They add to lanes, which the Go side starts, continues with the tail, and folds.
func rows() {
	reduce("sum", "func(lanes *[32]float32, x []float32)", []string{"x"}, func(acc vec, at addr, e int) {
		VADDPS(at("x", e), acc, acc)
	})
	reduce("dot", "func(lanes *[32]float32, x, y []float32)", []string{"x", "y"}, func(acc vec, at addr, e int) {
		v := vector()
		VMOVUPS(at("x", e), v)
		VMULPS(at("y", e), v, v)
		VADDPS(v, acc, acc)
	})
	reduce("max", "func(lanes *[32]float32, x []float32)", []string{"x"}, func(acc vec, at addr, e int) {
		v := vector()
		VMOVUPS(at("x", e), v)
		VMAXPS(acc, v, acc) // x > max ? x : max, so NaN is passed over
	})
	for _, store := range []bool{true, false} {
		name, sig, ptrs := "expSumOnly", "func(lanes *[32]float32, x []float32, max float32)", []string{"x"}
		if store {
			name, sig, ptrs = "expSum", "func(lanes *[32]float32, dst, x []float32, max float32)", []string{"dst", "x"}
		}
		var m vec
		reduceBy(name, sig, ptrs, func() { hoist(expConstants...); m = broadcast("max") }, func(acc []vec, at addr) {
			for i := 0; i < parts; i += 2 {
				v := loads(at, "x", i*width)
				for _, v := range v {
					VSUBPS(m, v, v)
				}
				for h, v := range exps(v...) {
					if store {
						VMOVUPS(v, at("dst", (i+h)*width))
					}
					VADDPS(v, acc[i+h], acc[i+h])
				}
			}
		})
	}
	squares()
	foldLanes()
}

func reduce(name, sig string, ptrs []string, body func(acc vec, at addr, e int)) {
	reduceWith(name, sig, ptrs, func() {}, body)
}

// reduceWith writes a loop of 32 elements a turn, after before.
func reduceWith(name, sig string, ptrs []string, before func(), body func(acc vec, at addr, e int)) {
	reduceBy(name, sig, ptrs, before, func(acc []vec, at addr) {
		for i, a := range acc {
			body(a, at, i*width)
		}
	})
}

// reduceBy gives a turn's body all lanes at once.
func reduceBy(name, sig string, ptrs []string, before func(), body func(acc []vec, at addr)) {
	text(name, sig)
	before()
	l := Load(Param("lanes"), GP64())
	acc := loadLanes(l, 0)
	loop(lanes, "x", ptrs, func(at addr) { body(acc, at) })
	storeLanes(acc, l, 0)
	ret()
}

func loadLanes(l Register, from int) []vec {
	acc := vectorOf(parts)
	for i, a := range acc {
		VMOVUPS(Mem{Base: l, Disp: 4 * (from + width*i)}, a)
	}
	return acc
}

func storeLanes(acc []vec, l Register, from int) {
	for i, a := range acc {
		VMOVUPS(a, Mem{Base: l, Disp: 4 * (from + width*i)})
	}
}

// squares is f32.SumSquares of one grain after the other: 16 lanes of float64, folded by halves. The square of a float32 is exact in
// float64, so fusing it with the sum changes no bit.
func squares() {
	text("squares", "func(sums []float64, x []float32)")
	sums, n := Load(Param("sums").Base(), GP64()), Load(Param("sums").Len(), GP64())
	x := Load(Param("x").Base(), GP64())
	doubles := width / 2
	acc, v := vectorOf(16/doubles), vectorOf(16/doubles)
	Label("grain")
	for at := 0; at < 128; at += 16 {
		for i := range v {
			VCVTPS2PD(Mem{Base: x, Disp: 4 * (at + doubles*i)}, v[i])
		}
		for i := range v {
			if at == 0 {
				VMULPD(v[i], v[i], acc[i])
			} else {
				VFMADD231PD(v[i], v[i], acc[i])
			}
		}
	}
	for n := len(acc) / 2; n > 0; n /= 2 {
		for i := range n {
			VADDPD(acc[i+n], acc[i], acc[i])
		}
	}
	half := XMM()
	lowest(acc[0], half, VADDPD)
	low := acc[0].AsX()
	VADDPD(half, low, low)
	VPERMILPD(U8(1), low, half)
	VADDSD(half, low, low)
	VMOVSD(low, Mem{Base: sums})
	ADDQ(U8(8), sums)
	ADDQ(U32(512), x)
	DECQ(n)
	JNZ(LabelRef("grain"))
	ret()
}
