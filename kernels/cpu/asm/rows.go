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
	addRows()
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

// squares is f32.SumSquares of grains, four at a time: 16 lanes of float64, folded by halves. The square of a float32 is exact in float64,
// so fusing it with the sum changes no bit. The last steps of the fold add the halves of two grains at once. The loop keeps up with memory,
// also where vectors could be wider.
func squares() {
	if wide {
		return
	}
	text("squares", "func(sums []float64, x []float32)")
	sums, n := Load(Param("sums").Base(), GP64()), Load(Param("sums").Len(), GP64())
	x := Load(Param("x").Base(), GP64())
	Label("group")
	v := make([]vec, 4)
	for g := range v {
		v[g] = grain(x, g)
	}
	for i := range 2 {
		v[i] = addHalves(v[2*i], v[2*i+1], func(a, b, lo, hi vec) {
			VPERM2F128(U8(0x20), b, a, lo)
			VPERM2F128(U8(0x31), b, a, hi)
		})
	}
	out := addHalves(v[0], v[1], func(a, b, lo, hi vec) {
		VUNPCKLPD(b, a, lo)
		VUNPCKHPD(b, a, hi)
	})
	VPERMPD(U8(0xd8), out, out) // grains 0, 2, 1, 3
	VMOVUPD(out, Mem{Base: sums})
	ADDQ(U8(8*len(v)), sums)
	ADDQ(U32(uint32(512*len(v))), x)
	SUBQ(U8(len(v)), n)
	JNZ(LabelRef("group"))
	ret()
}

// grain squares number g of the grains at x, and folds its lanes to one vector.
func grain(x Register, g int) vec {
	acc, v := vectorOf(4), vectorOf(4)
	for at := 0; at < 128; at += 16 {
		for i := range v {
			VCVTPS2PD(Mem{Base: x, Disp: 512*g + 4*(at+4*i)}, v[i])
		}
		for i, a := range acc {
			if at == 0 {
				VMULPD(v[i], v[i], a)
			} else {
				VFMADD231PD(v[i], v[i], a)
			}
		}
	}
	VADDPD(acc[2], acc[0], acc[0])
	VADDPD(acc[3], acc[1], acc[1])
	VADDPD(acc[1], acc[0], acc[0])
	return acc[0]
}

func addHalves(a, b vec, split func(a, b, lo, hi vec)) vec {
	lo, hi := vector(), vector()
	split(a, b, lo, hi)
	VADDPD(hi, lo, lo)
	return lo
}

// addRows adds eight rows of x, ld bytes apart, to dst, one after the other; linkRows eight rows times the factors at a, fused: eight links
// of the chains of a row of a product.
func addRows() {
	eightRows("addRows", "func(dst, x []float32, ld uintptr)", false)
	eightRows("linkRows", "func(dst, x []float32, ld uintptr, a *float32)", true)
}

func eightRows(name, sig string, factors bool) {
	text(name, sig)
	ld := Load(Param("ld"), GP64())
	ld3 := GP64()
	LEAQ(Mem{Base: ld, Index: ld, Scale: 2}, ld3)
	dst := Load(Param("dst").Base(), GP64())
	x := [2]Register{Load(Param("x").Base(), GP64()), GP64()}
	LEAQ(Mem{Base: x[0], Index: ld, Scale: 4}, x[1])
	n := Load(Param("dst").Len(), GP64())
	var f []vec
	if factors {
		a := Load(Param("a"), GP64())
		f = vectorOf(8)
		for r, f := range f {
			VBROADCASTSS(Mem{Base: a, Disp: 4 * r}, f)
		}
	}
	JMP(LabelRef("test"))
	Label("turn")
	acc := vectorOf(parts)
	for i, a := range acc {
		VMOVUPS(Mem{Base: dst, Disp: 4 * width * i}, a)
	}
	for r := range 8 {
		for i, a := range acc {
			m := Mem{Base: x[r/4], Disp: 4 * width * i}
			switch r % 4 {
			case 1, 2:
				m.Index, m.Scale = ld, uint8(r%4)
			case 3:
				m.Index, m.Scale = ld3, 1
			}
			if factors {
				VFMADD231PS(m, f[r], a)
			} else {
				VADDPS(m, a, a)
			}
		}
	}
	for i, a := range acc {
		VMOVUPS(a, Mem{Base: dst, Disp: 4 * width * i})
	}
	for _, r := range []Register{dst, x[0], x[1]} {
		ADDQ(U32(4*lanes), r)
	}
	SUBQ(U32(lanes), n)
	Label("test")
	TESTQ(n, n)
	JG(LabelRef("turn"))
	ret()
}
