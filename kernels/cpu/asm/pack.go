package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// packs writes the copies of blocks of operands into the order in which tiles read them. Strides are in bytes.
func packs() {
	packRows("packRows", "func(dst, src *float32, ld, k uintptr)", 1)
	packRows("packRows4", "func(dst, src *float32, ld, k, panel uintptr)", 4)
	packColumns()
	packA()
	packARows()
}

// packRows copies k rows of 16 floats, ld apart; packRows4 of 64, each 16 to a panel of its own. Panels are panel bytes apart.
func packRows(name, sig string, panels int) {
	TEXT(name+suffix, NOSPLIT, sig)
	dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	ld, k := Load(Param("ld"), GP64()), Load(Param("k"), GP64())
	at := make([]Register, panels)
	at[0] = dst
	if panels > 1 {
		panel := Load(Param("panel"), GP64())
		for i := 1; i < panels; i++ {
			at[i] = GP64()
			LEAQ(Mem{Base: at[i-1], Index: panel, Scale: 1}, at[i])
		}
	}
	Label("turn")
	v := vectorOf(2 * panels)
	for i := range v {
		VMOVUPS(Mem{Base: src, Disp: 4 * width * i}, v[i])
	}
	for i := range v {
		VMOVUPS(v[i], Mem{Base: at[i/2], Disp: 4 * width * (i % 2)})
	}
	ADDQ(ld, src)
	for _, r := range at {
		ADDQ(U8(64), r)
	}
	DECQ(k)
	JNZ(LabelRef("turn"))
	ret()
}

// packColumns transposes 8 rows of src, ld apart, k (a multiple of 8) floats each, into half panels: dst[p·16 + j] = src[j][p].
func packColumns() {
	TEXT("packColumns"+suffix, NOSPLIT, "func(dst, src *float32, ld, k uintptr)")
	dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	ld, k := Load(Param("ld"), GP64()), Load(Param("k"), GP64())
	src3, src6 := GP64(), GP64() // rows 3 and 6
	LEAQ(Mem{Base: src, Index: ld, Scale: 2}, src3)
	ADDQ(ld, src3)
	LEAQ(Mem{Base: src3, Index: ld, Scale: 2}, src6)
	ADDQ(ld, src6)
	Label("turn")
	v := make([]vec, 8)
	for j := range v {
		v[j] = vector()
		m := Mem{Base: []Register{src, src3, src6}[j/3]}
		if j%3 > 0 {
			m.Index, m.Scale = ld, uint8(j%3)
		}
		VMOVUPS(m, v[j])
	}
	for p, t := range transpose(v) {
		VMOVUPS(t, Mem{Base: dst, Disp: 64 * p})
	}
	for _, s := range []Register{src, src3, src6} {
		ADDQ(U8(32), s)
	}
	ADDQ(U32(8*64), dst)
	SUBQ(U8(8), k)
	JNZ(LabelRef("turn"))
	ret()
}

// transpose is 8 by 8: pairs of floats, pairs of pairs, halves.
func transpose(v []vec) []vec {
	pair, quad, out := vectorOf(8), vectorOf(8), vectorOf(8)
	for i := 0; i < 8; i += 2 {
		VUNPCKLPS(v[i+1], v[i], pair[i])
		VUNPCKHPS(v[i+1], v[i], pair[i+1])
	}
	for i := 0; i < 8; i += 4 {
		for h := range 2 {
			VSHUFPS(U8(0x44), pair[i+2+h], pair[i+h], quad[i+2*h])
			VSHUFPS(U8(0xee), pair[i+2+h], pair[i+h], quad[i+2*h+1])
		}
	}
	for i := range 4 {
		VPERM2F128(U8(0x20), quad[i+4], quad[i], out[i])
		VPERM2F128(U8(0x31), quad[i+4], quad[i], out[i+4])
	}
	return out
}

// packA copies k rows of 6 floats, ld apart: a block of six rows of a transposed A.
func packA() {
	TEXT("packA"+suffix, NOSPLIT, "func(dst, src *float32, ld, k uintptr)")
	dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	ld, k := Load(Param("ld"), GP64()), Load(Param("k"), GP64())
	four, two := XMM(), XMM()
	Label("turn")
	VMOVUPS(Mem{Base: src}, four)
	VMOVSD(Mem{Base: src, Disp: 16}, two)
	VMOVUPS(four, Mem{Base: dst})
	VMOVSD(two, Mem{Base: dst, Disp: 16})
	ADDQ(ld, src)
	ADDQ(U8(24), dst)
	DECQ(k)
	JNZ(LabelRef("turn"))
	ret()
}

// packARows transposes 6 rows of src, ld apart, k (a multiple of 8) floats each: dst[p·6 + i] = src[i][p]. Each store is of 8
// floats, of which the next overwrites two: dst has room for two more than 6k.
func packARows() {
	TEXT("packARows"+suffix, NOSPLIT, "func(dst, src *float32, ld, k uintptr)")
	dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	ld, k := Load(Param("ld"), GP64()), Load(Param("k"), GP64())
	src3 := GP64()
	LEAQ(Mem{Base: src, Index: ld, Scale: 2}, src3)
	ADDQ(ld, src3)
	Label("turn")
	v := make([]vec, 8)
	for i := range 6 {
		v[i] = vector()
		m := Mem{Base: []Register{src, src3}[i/3]}
		if i%3 > 0 {
			m.Index, m.Scale = ld, uint8(i%3)
		}
		VMOVUPS(m, v[i])
	}
	v[6], v[7] = v[4], v[5]
	for p, t := range transpose(v) {
		VMOVUPS(t, Mem{Base: dst, Disp: 24 * p})
	}
	ADDQ(U8(32), src)
	ADDQ(U8(32), src3)
	ADDQ(U32(8*24), dst)
	SUBQ(U8(8), k)
	JNZ(LabelRef("turn"))
	ret()
}
