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
		reduceWith(name, sig, ptrs, func() { m = broadcast("max") }, func(acc vec, at addr, e int) {
			v := vector()
			VMOVUPS(at("x", e), v)
			VSUBPS(m, v, v)
			v = exp(v)
			if store {
				VMOVUPS(v, at("dst", e))
			}
			VADDPS(v, acc, acc)
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
	TEXT(name+suffix, NOSPLIT, sig)
	before()
	l := Load(Param("lanes"), GP64())
	acc := loadLanes(l, 0)
	loop(lanes, "x", ptrs, func(at addr) {
		for i, a := range acc {
			body(a, at, i*width)
		}
	})
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
	TEXT("squares"+suffix, NOSPLIT, "func(sums []float64, x []float32)")
	sums, n := Load(Param("sums").Base(), GP64()), Load(Param("sums").Len(), GP64())
	x := Load(Param("x").Base(), GP64())
	acc, v := vectorOf(4), vectorOf(4)
	Label("grain")
	zero(acc...)
	for at := 0; at < 128; at += 16 {
		for i := range v {
			VCVTPS2PD(Mem{Base: x, Disp: 4 * (at + 4*i)}, v[i])
		}
		for i := range v {
			VFMADD231PD(v[i], v[i], acc[i])
		}
	}
	VADDPD(acc[2], acc[0], acc[0])
	VADDPD(acc[3], acc[1], acc[1])
	VADDPD(acc[1], acc[0], acc[0])
	half := XMM()
	VEXTRACTF128(U8(1), acc[0], half)
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
