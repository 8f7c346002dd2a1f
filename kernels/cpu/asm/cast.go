package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// casts writes conversions; 16-bit slices count elements as floats do, at half the stride.
func casts() {
	convert("widenBF16", "func(dst []float32, src []uint16)", func(src, dst Mem) {
		v := vector()
		VPMOVZXWD(src, v)
		VPSLLD(U8(16), v, v)
		VMOVUPS(v, dst)
	})
	convert("widenF16", "func(dst []float32, src []uint16)", func(src, dst Mem) {
		v := vector()
		VCVTPH2PS(src, v)
		VMOVUPS(v, dst)
	})
	convert("narrowF16", "func(dst []uint16, src []float32)", func(src, dst Mem) {
		v := vector()
		VMOVUPS(src, v)
		VCVTPS2PH(U8(0), v, dst)
	})
	convert("narrowBF16", "func(dst []uint16, src []float32)", func(src, dst Mem) {
		// (b + 0x7fff + (b>>16&1)) >> 16, and b>>16 | 0x40 where NaN.
		v, r, nan := vector(), vector(), vector()
		VMOVUPS(src, v)
		VPSRLD(U8(16), v, r)
		VORPS(bits(0x40), r, nan)
		VANDPS(bits(1), r, r)
		VPADDD(bits(0x7fff), r, r)
		VPADDD(v, r, r)
		VPSRLD(U8(16), r, r)
		replace(unordered, v, v, nan, r)
		if wide {
			VPMOVDW(r, dst)
			return
		}
		// Eight words of 32 bits to 16: pack within halves, bring the halves together.
		VPACKUSDW(r, r, r)
		VPERMQ(U8(0x08), r, r)
		VMOVUPS(r.AsX(), dst)
	})
}

func convert(name, sig string, body func(src, dst Mem)) {
	text(name, sig)
	dst, src := Load(Param("dst").Base(), GP64()), Load(Param("src").Base(), GP64())
	end, i := Load(Param("dst").Len(), GP64()), GP64()
	scale := [2]int{4, 2} // of src, dst
	if name[0] == 'w' {
		scale = [2]int{2, 4}
	}
	hoist(math.Float32frombits(0x40), math.Float32frombits(1), math.Float32frombits(0x7fff))
	XORQ(i, i)
	JMP(LabelRef("test"))
	Label("turn")
	for e := 0; e < turn; e += width {
		body(Mem{Base: src, Index: i, Scale: uint8(scale[0]), Disp: scale[0] * e}, Mem{Base: dst, Index: i, Scale: uint8(scale[1]), Disp: scale[1] * e})
	}
	ADDQ(U32(turn), i)
	Label("test")
	CMPQ(i, end)
	JL(LabelRef("turn"))
	ret()
}
