package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// casts writes conversions; 16-bit slices count elements as floats do, at half the stride. Those that stream write past the caches, whole
// cache lines at a time: lines of dst, which is aligned to one, are then not read first.
func casts() {
	for _, stream := range []bool{false, true} {
		converts(stream)
	}
}

func converts(stream bool) {
	convert("widenBF16", stream, func(src Mem) vec {
		v := vector()
		VPMOVZXWD(src, v)
		VPSLLD(U8(16), v, v)
		return v
	})
	convert("widenF16", stream, func(src Mem) vec {
		v := vector()
		VCVTPH2PS(src, v)
		return v
	})
	if !wide { // keeps up with memory, and is slower where vectors are wider
		convert("narrowF16", stream, func(src Mem) vec {
			v, h := vector(), vector()
			VMOVUPS(src, v)
			VCVTPS2PH(U8(0), v, half(h))
			return h
		})
	}
	convert("narrowBF16", stream, func(src Mem) vec {
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
			VPMOVDW(r, half(r))
			return r
		}
		// Eight words of 32 bits to 16: pack within halves, bring the halves together.
		VPACKUSDW(r, r, r)
		VPERMQ(U8(0x08), r, r)
		return r
	})
}

// half is the lower half of v.
func half(v vec) Register {
	if wide {
		return v.AsY()
	}
	return v.AsX()
}

// convert writes a loop. f gives what becomes of a vector of src; 16-bit results are in its lower half.
func convert(name string, stream bool, f func(src Mem) vec) {
	sig, scale := "func(dst []uint16, src []float32)", [2]int{4, 2} // of src, dst
	if name[0] == 'w' {
		sig, scale = "func(dst []float32, src []uint16)", [2]int{2, 4}
	}
	if stream {
		name += "Stream"
	}
	text(name, sig)
	dst, src := Load(Param("dst").Base(), GP64()), Load(Param("src").Base(), GP64())
	end, i := Load(Param("dst").Len(), GP64()), GP64()
	hoist(math.Float32frombits(0x40), math.Float32frombits(1), math.Float32frombits(0x7fff))
	XORQ(i, i)
	JMP(LabelRef("test"))
	Label("turn")
	for e := 0; e < lanes; e += 2 * width {
		var v [2]vec
		for h := range v {
			v[h] = f(Mem{Base: src, Index: i, Scale: uint8(scale[0]), Disp: scale[0] * (e + h*width)})
		}
		to := func(h int) Mem {
			return Mem{Base: dst, Index: i, Scale: uint8(scale[1]), Disp: scale[1] * (e + h*width)}
		}
		store := VMOVUPS
		if stream {
			store = func(ops ...Op) { VMOVNTPS(ops[0], ops[1]) }
		}
		if scale[1] == 4 {
			store(v[0], to(0))
			store(v[1], to(1))
			continue
		}
		if wide {
			VINSERTF64X4(U8(1), half(v[1]), v[0], v[0])
		} else {
			VINSERTF128(U8(1), half(v[1]), v[0], v[0])
		}
		store(v[0], to(0))
	}
	ADDQ(U32(lanes), i)
	Label("test")
	CMPQ(i, end)
	JL(LabelRef("turn"))
	if stream {
		SFENCE()
	}
	ret()
}
