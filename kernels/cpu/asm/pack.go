package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// panels is how many panels packRowsWide fills at a time.
func panels() int { return 64 / (set.vectors * width) }

// packs writes the copies of blocks of operands into the order in which tiles read them. Strides are in bytes.
func packs() {
	packRows("packRows", "func(dst, src *float32, ld, k uintptr)", 1)
	packRows("packRowsWide", "func(dst, src *float32, ld, k, panel uintptr)", panels())
	packColumns()
	packLinks()
	packARows()
	dots()
}

// packRows copies k rows of a panel's columns, ld apart; packRowsWide of 64 columns, to several panels, which are panel bytes apart.
func packRows(name, sig string, panels int) {
	text(name, sig)
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
	soon := GP64()
	if panels > 1 {
		LEAQ(Mem{Base: src, Index: ld, Scale: 8}, soon)
	}
	Label("turn")
	if panels > 1 { // rows are far apart: nothing else foresees the next
		for line := range 4 {
			PREFETCHT0(Mem{Base: soon, Disp: 64 * line})
		}
		ADDQ(ld, soon)
	}
	v := vectorOf(set.vectors * panels)
	for i := range v {
		VMOVUPS(Mem{Base: src, Disp: 4 * width * i}, v[i])
	}
	for i := range v {
		VMOVUPS(v[i], Mem{Base: at[i/set.vectors], Disp: 4 * width * (i % set.vectors)})
	}
	ADDQ(ld, src)
	for _, r := range at {
		ADDQ(U32(uint32(4*width*set.vectors)), r)
	}
	DECQ(k)
	JNZ(LabelRef("turn"))
	ret()
}

// packColumns transposes as many rows of src as a vector is wide, ld apart, k (a multiple of that) floats each, into a part of a panel with
// rows of step bytes: dst[p·step/4 + j] = src[j][p].
func packColumns() {
	text("packColumns", "func(dst, src *float32, ld, k, step uintptr)")
	t := newTransposer(width)
	step := Load(Param("step"), GP64())
	t.turns(func(v vec) {
		VMOVUPS(v, Mem{Base: t.dst})
		ADDQ(step, t.dst)
	})
}

// packARows transposes a tile's rows of src, ld apart, k (a multiple of a vector's width) floats each: dst[p·rows + i] = src[i][p]. Each
// store is of a vector, of which the next overwrites what is too much: dst has room for a vector's width more.
func packARows() {
	text("packARows", "func(dst, src *float32, ld, k uintptr)")
	t := newTransposer(set.rows)
	t.turns(func(v vec) {
		VMOVUPS(v, Mem{Base: t.dst})
		ADDQ(U8(4*set.rows), t.dst)
	})
}

// dots continues as many chains at dst as a vector is wide, each by k links (a multiple of that): rows of src, ld apart, times a.
func dots() {
	text("dots", "func(dst, src *float32, ld, k uintptr, a *float32)")
	t := newTransposer(width)
	a, acc, p := Load(Param("a"), GP64()), vector(), 0
	VMOVUPS(Mem{Base: t.dst}, acc)
	t.loop(func(v vec) {
		x := vector()
		VBROADCASTSS(Mem{Base: a, Disp: 4 * p}, x)
		VFMADD231PS(v, x, acc)
		if p++; p == width {
			ADDQ(U8(4*width), a)
		}
	})
	VMOVUPS(acc, Mem{Base: t.dst})
	ret()
}

// transposer reads blocks of rows, a vector long.
type transposer struct {
	dst, ld, k Register
	rows       int
	src        []Register // every fourth row
	ld3        Register
}

func newTransposer(rows int) *transposer {
	t := &transposer{dst: Load(Param("dst"), GP64()), ld: Load(Param("ld"), GP64()), k: Load(Param("k"), GP64()), rows: rows}
	t.ld3 = GP64()
	LEAQ(Mem{Base: t.ld, Index: t.ld, Scale: 2}, t.ld3)
	t.src = []Register{Load(Param("src"), GP64())}
	for r := 4; r < rows; r += 4 {
		s := GP64()
		LEAQ(Mem{Base: t.src[r/4-1], Index: t.ld, Scale: 4}, s)
		t.src = append(t.src, s)
	}
	return t
}

func (t *transposer) row(i int) Mem {
	m := Mem{Base: t.src[i/4]}
	switch i % 4 {
	case 1, 2:
		m.Index, m.Scale = t.ld, uint8(i%4)
	case 3:
		m.Index, m.Scale = t.ld3, 1
	}
	return m
}

// turns is a whole function: it transposes block after block, and put gets column after column.
func (t *transposer) turns(put func(v vec)) {
	t.loop(put)
	ret()
}

func (t *transposer) loop(put func(v vec)) {
	Label("turn")
	v := make([]vec, width)
	for i := range v {
		if i >= t.rows {
			v[i] = v[t.rows-1]
			continue
		}
		v[i] = vector()
		VMOVUPS(t.row(i), v[i])
	}
	for _, c := range transpose(v) {
		put(c)
	}
	for _, s := range t.src {
		ADDQ(U8(4*width), s)
	}
	SUBQ(U8(width), t.k)
	JNZ(LabelRef("turn"))
}

// transpose is of as many vectors as they are wide: pairs of floats, pairs of pairs, quarters or halves.
func transpose(v []vec) []vec {
	n := len(v)
	pair, quad, out := vectorOf(n), vectorOf(n), vectorOf(n)
	for i := 0; i < n; i += 2 {
		VUNPCKLPS(v[i+1], v[i], pair[i])
		VUNPCKHPS(v[i+1], v[i], pair[i+1])
	}
	for i := 0; i < n; i += 4 {
		for h := range 2 {
			VSHUFPS(U8(0x44), pair[i+2+h], pair[i+h], quad[i+2*h])
			VSHUFPS(U8(0xee), pair[i+2+h], pair[i+h], quad[i+2*h+1])
		}
	}
	// Vector 4i+c has in its quarter q columns 4q+c of rows 4i to 4i+3.
	if !wide {
		for c := range 4 {
			VPERM2F128(U8(0x20), quad[c+4], quad[c], out[c])
			VPERM2F128(U8(0x31), quad[c+4], quad[c], out[c+4])
		}
		return out
	}
	for c := range 4 {
		even, odd := vectorOf(2), vectorOf(2) // quarters 0 and 2, 1 and 3, of rows 0 to 7, 8 to 15
		for h := range 2 {
			VSHUFF32X4(U8(0x88), quad[8*h+c+4], quad[8*h+c], even[h])
			VSHUFF32X4(U8(0xdd), quad[8*h+c+4], quad[8*h+c], odd[h])
		}
		VSHUFF32X4(U8(0x88), even[1], even[0], out[c])
		VSHUFF32X4(U8(0xdd), even[1], even[0], out[c+8])
		VSHUFF32X4(U8(0x88), odd[1], odd[0], out[c+4])
		VSHUFF32X4(U8(0xdd), odd[1], odd[0], out[c+12])
	}
	return out
}

// packLinks copies k rows of a tile's rows' floats, ld apart: a block of rows of a transposed A.
func packLinks() {
	text("packLinks", "func(dst, src *float32, ld, k uintptr)")
	dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	ld, k := Load(Param("ld"), GP64()), Load(Param("k"), GP64())
	Label("turn")
	for at := 0; at < set.rows; {
		from, to := Mem{Base: src, Disp: 4 * at}, Mem{Base: dst, Disp: 4 * at}
		switch n := set.rows - at; {
		case n >= 8:
			v := YMM()
			VMOVUPS(from, v)
			VMOVUPS(v, to)
			at += 8
		case n >= 4:
			v := XMM()
			VMOVUPS(from, v)
			VMOVUPS(v, to)
			at += 4
		default:
			v := XMM()
			VMOVSD(from, v)
			VMOVSD(v, to)
			at += 2
		}
	}
	ADDQ(ld, src)
	ADDQ(U8(4*set.rows), dst)
	DECQ(k)
	JNZ(LabelRef("turn"))
	ret()
}
