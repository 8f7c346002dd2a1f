package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// Offsets in tileArgs; strides are in bytes.
const (
	argA = 8 * iota
	argAI
	argAP
	argAG
	argB
	argBP
	argC
	argLDC
	argInit
	argLDI
	argK
	argGroups
	argColumns
	argTriangle
	argBG
	argKG
)

const tileRows, tileColumns = 6, 16

var columnMask Mem

// tiles writes the products' inner loops: 1 to 6 rows by 16 columns of C stay in registers over all of k. Masked ones load and
// store only the columns of a mask.
//
// Beside the diagonal of attention the rows of a group have different links: with a positive argTriangle, row i takes i links more
// than row 0, behind those that all have; with a negative one, row 0 starts i links before row i. From one group to the next,
// B moves by argBG bytes and the number of common links by argKG.
func tiles() {
	// 16 ones, then 16 zeros: a window n before the zeros is the mask of n columns.
	columnMask = GLOBL("columnMask", RODATA|NOPTR)
	for i := range 2 * tileColumns {
		DATA(4*i, U32(1<<32-1)*U32(1-i/tileColumns))
	}
	for rows := 1; rows <= tileRows; rows++ {
		tile(rows, false)
		tile(rows, true)
	}
}

func tile(rows int, masked bool) {
	name := fmt.Sprintf("tile%d%s", rows, suffix)
	if masked {
		name = fmt.Sprintf("tile%dm%s", rows, suffix)
	}
	TEXT(name, NOSPLIT, "func(t *byte)")
	t := Load(Param("t"), GP64())
	arg := func(off int) Register {
		r := GP64()
		MOVQ(Mem{Base: t, Disp: off}, r)
		return r
	}
	a, ai, ap, c, groups := arg(argA), arg(argAI), arg(argAP), arg(argC), arg(argGroups)
	init, ldc := arg(argInit), arg(argLDC)
	acc := make([][2]vec, rows)
	for i := range acc {
		acc[i] = [2]vec{vector(), vector()}
	}
	b := [2]vec{vector(), vector()}

	Label("group")
	begin(acc, b, init, t, masked)
	multiply(acc, b, a, ai, ap, t, func() {
		if rows == tileRows {
			prefetch(c, ldc)
		}
	})
	write(acc, b, c, ldc, t, masked)

	// The next rows.
	step := GP64()
	MOVQ(Mem{Base: t, Disp: argBG}, step)
	ADDQ(step, Mem{Base: t, Disp: argB})
	MOVQ(Mem{Base: t, Disp: argKG}, step)
	ADDQ(step, Mem{Base: t, Disp: argK})
	ADDQ(Mem{Base: t, Disp: argAG}, a)
	IMUL3Q(U8(rows), ldc, step)
	ADDQ(step, c)
	TESTQ(init, init)
	JZ(LabelRef("next"))
	IMUL3Q(U8(rows), Mem{Base: t, Disp: argLDI}, step)
	ADDQ(step, init)
	Label("next")
	DECQ(groups)
	JNZ(LabelRef("group"))
	ret()
}

// prefetch asks for the rows of C of the next group: its chains cannot start before they are there. Where a row's columns lie in two
// cache lines, the panel before has brought the first.
func prefetch(c, ldc Register) {
	d := GP64()
	IMUL3Q(U8(tileRows), ldc, d)
	ADDQ(c, d)
	for i := range tileRows {
		PREFETCHT0(Mem{Base: d, Disp: 4 * (tileColumns - 1)})
		if i+1 < tileRows {
			ADDQ(ldc, d)
		}
	}
}

// masks loads the columns' masks into the registers of b, which are free outside the loop over k.
func masks(b [2]vec, t Register) {
	m, n := GP64(), GP64()
	LEAQ(columnMask, m)
	MOVQ(Mem{Base: t, Disp: argColumns}, n)
	SHLQ(U8(2), n)
	SUBQ(n, m)
	VMOVUPS(Mem{Base: m, Disp: 4 * tileColumns}, b[0])
	VMOVUPS(Mem{Base: m, Disp: 4 * (tileColumns + width)}, b[1])
}

// begin is where the chains start: 0, or rows at init.
func begin(acc [][2]vec, b [2]vec, init, t Register, masked bool) {
	TESTQ(init, init)
	JZ(LabelRef("zero"))
	if masked {
		masks(b, t)
	}
	s, ldi := GP64(), GP64()
	MOVQ(init, s)
	MOVQ(Mem{Base: t, Disp: argLDI}, ldi)
	for i := range acc {
		for h := range 2 {
			m := Mem{Base: s, Disp: 4 * width * h}
			if masked {
				VMASKMOVPS(m, b[h], acc[i][h])
			} else {
				VMOVUPS(m, acc[i][h])
			}
		}
		if i+1 < len(acc) {
			ADDQ(ldi, s)
		}
	}
	JMP(LabelRef("started"))
	Label("zero")
	for i := range acc {
		zero(acc[i][:]...)
	}
	Label("started")
}

// multiply is the loop over k: rows 0 to 2 of A are reached from one pointer, 3 to 5 from a second.
//
// soon is called once, early enough for what it prefetches to come, and late: what comes too early may be gone again, as rows of C
// are often a multiple of 4 KiB apart, and then share one set of the first-level cache.
func multiply(acc [][2]vec, b [2]vec, a, ai, ap, t Register, soon func()) {
	const unroll, late = 4, 96
	p, p3, q, bp, k := GP64(), GP64(), GP64(), GP64(), GP64()
	MOVQ(a, p)
	LEAQ(Mem{Base: a, Index: ai, Scale: 2}, p3)
	ADDQ(ai, p3)
	MOVQ(Mem{Base: t, Disp: argB}, q)
	MOVQ(Mem{Base: t, Disp: argBP}, bp)
	MOVQ(Mem{Base: t, Disp: argK}, k)
	x := vector()
	links := func(from, to int) { // of rows from up to to
		VMOVUPS(Mem{Base: q}, b[0])
		VMOVUPS(Mem{Base: q, Disp: 4 * width}, b[1])
		ADDQ(bp, q)
		for i := from; i < to; i++ {
			m := Mem{Base: p}
			if i >= 3 {
				m.Base = p3
			}
			if i%3 > 0 {
				m.Index, m.Scale = ai, uint8(i%3)
			}
			VBROADCASTSS(m, x)
			VFMADD231PS(b[0], x, acc[i][0])
			VFMADD231PS(b[1], x, acc[i][1])
		}
		ADDQ(ap, p)
		if len(acc) > 3 {
			ADDQ(ap, p3)
		}
	}
	link := func() { links(0, len(acc)) }
	if len(acc) > 1 {
		CMPQ(Mem{Base: t, Disp: argTriangle}, U8(0))
		JGE(LabelRef("common"))
		for i := 1; i < len(acc); i++ {
			links(0, i)
		}
		Label("common")
	}
	left := GP64()
	CMPQ(k, U8(late))
	JGE(LabelRef("first"))
	soon()
	Label("first")
	SUBQ(U8(unroll), k)
	JL(LabelRef("rest"))
	Label("four")
	LEAQ(Mem{Base: k, Disp: unroll - late}, left)
	CMPQ(left, U8(unroll))
	JAE(LabelRef("early"))
	soon()
	Label("early")
	for range unroll {
		link()
	}
	SUBQ(U8(unroll), k)
	JGE(LabelRef("four"))
	Label("rest")
	ADDQ(U8(unroll), k)
	JZ(LabelRef("done"))
	Label("one")
	link()
	DECQ(k)
	JNZ(LabelRef("one"))
	Label("done")
	if len(acc) > 1 {
		CMPQ(Mem{Base: t, Disp: argTriangle}, U8(0))
		JLE(LabelRef("square"))
		for i := 1; i < len(acc); i++ {
			links(i, len(acc))
		}
		Label("square")
	}
}

func write(acc [][2]vec, b [2]vec, c, ldc, t Register, masked bool) {
	if masked {
		masks(b, t)
	}
	d := GP64()
	MOVQ(c, d)
	for i := range acc {
		for h := range 2 {
			m := Mem{Base: d, Disp: 4 * width * h}
			if masked {
				VMASKMOVPS(acc[i][h], b[h], m)
			} else {
				VMOVUPS(acc[i][h], m)
			}
		}
		if i+1 < len(acc) {
			ADDQ(ldc, d)
		}
	}
}
