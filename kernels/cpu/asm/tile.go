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

var columnMask Mem

// tiles writes the products' inner loops: some rows by some vectors of columns of C stay in registers over all of k, and for each
// number of rows up to the largest there is a loop. Only the first argColumns columns are loaded and stored. In the end argA, argB,
// argC, argInit and argK are those of the last group of rows: no pointer leaves its operand.
//
// Beside the diagonal of attention the rows of a group have different links: with a positive argTriangle, row i takes i links more
// than row 0, behind those that all have; with a negative one, row 0 starts i links before row i. From one group to the next,
// B moves by argBG bytes and the number of common links by argKG.
func tiles() {
	if !wide {
		// 16 ones, then 16 zeros: a window n before the zeros is the mask of n columns.
		columnMask = GLOBL("columnMask", RODATA|NOPTR)
		for i := range 32 {
			DATA(4*i, U32(1<<32-1)*U32(1-i/16))
		}
	}
	for rows := 1; rows <= set.rows; rows++ {
		newTile("tile", rows, set.vectors).write()
	}
	for rows := 1; rows <= slimRows && !wide; rows++ {
		newTile("slim", rows, 1).write()
	}
}

// slimRows is the largest number of rows of tiles of one vector.
const slimRows = 12

// aTile is one loop.
type aTile struct {
	t    Register
	acc  [][]vec
	b    []vec // where masks are, outside the loop over k, of narrow vectors
	mask []Op
	// ahead is whether C may be far away: more rows follow.
	ahead bool
}

func newTile(name string, rows, vectors int) *aTile {
	text(fmt.Sprintf("%s%d", name, rows), "func(t *byte)")
	l := &aTile{t: Load(Param("t"), GP64()), acc: make([][]vec, rows), b: vectorOf(vectors), ahead: name == "tile" && rows == set.rows}
	for i := range l.acc {
		l.acc[i] = vectorOf(vectors)
	}
	return l
}

func (l *aTile) arg(off int) Mem { return Mem{Base: l.t, Disp: off} }

func (l *aTile) load(off int) Register {
	r := GP64()
	MOVQ(l.arg(off), r)
	return r
}

func (l *aTile) write() {
	if wide {
		l.makeMasks()
	}
	Label("group")
	l.begin()
	l.multiply()
	l.store()
	DECQ(l.arg(argGroups))
	JZ(LabelRef("end"))
	l.next()
	JMP(LabelRef("group"))
	Label("end")
	ret()
}

// next points at the next rows.
func (l *aTile) next() {
	step := GP64()
	for _, m := range [][2]int{{argBG, argB}, {argKG, argK}, {argAG, argA}} {
		MOVQ(l.arg(m[0]), step)
		ADDQ(step, l.arg(m[1]))
	}
	IMUL3Q(U8(len(l.acc)), l.arg(argLDC), step)
	ADDQ(step, l.arg(argC))
	IMUL3Q(U8(len(l.acc)), l.arg(argLDI), step)
	ADDQ(step, l.arg(argInit))
}

// makeMasks fills mask registers.
func (l *aTile) makeMasks() {
	ones := GP64()
	MOVQ(I32(-1), ones)
	BZHIQ(l.load(argColumns), ones, ones)
	for range l.b {
		k := K()
		KMOVW(ones.As32(), k)
		SHRQ(U8(16), ones)
		l.mask = append(l.mask, k)
	}
}

// loadMasks loads narrow vectors' masks into the registers of b, which are free outside the loop over k.
func (l *aTile) loadMasks() {
	if wide {
		return
	}
	m := GP64()
	n := l.load(argColumns)
	LEAQ(columnMask, m)
	SHLQ(U8(2), n)
	SUBQ(n, m)
	for v, b := range l.b {
		VMOVUPS(Mem{Base: m, Disp: 64 + 4*width*v}, b)
	}
}

func (l *aTile) columns() int { return len(l.b) * width }

// rowsOf calls body for each vector of each row from p on, rows step apart.
func (l *aTile) rowsOf(p, step Register, body func(m Mem, i, v int)) {
	for i := range l.acc {
		for v := range l.b {
			body(Mem{Base: p, Disp: 4 * width * v}, i, v)
		}
		if i+1 < len(l.acc) {
			ADDQ(step, p)
		}
	}
}

// begin is where the chains start: 0, or rows at init.
func (l *aTile) begin() {
	s := l.load(argInit)
	TESTQ(s, s)
	JZ(LabelRef("zero"))
	ldi := l.load(argLDI)
	CMPQ(l.arg(argColumns), U8(l.columns()))
	JNE(LabelRef("beginMasked"))
	l.rowsOf(s, ldi, func(m Mem, i, v int) { VMOVUPS(m, l.acc[i][v]) })
	JMP(LabelRef("started"))
	Label("beginMasked")
	l.loadMasks()
	l.rowsOf(s, ldi, func(m Mem, i, v int) {
		if wide {
			VMOVUPS_Z(m, l.mask[v], l.acc[i][v])
		} else {
			VMASKMOVPS(m, l.b[v], l.acc[i][v])
		}
	})
	JMP(LabelRef("started"))
	Label("zero")
	for i := range l.acc {
		zero(l.acc[i]...)
	}
	Label("started")
}

func (l *aTile) store() {
	d, ldc := l.load(argC), l.load(argLDC)
	CMPQ(l.arg(argColumns), U8(l.columns()))
	JNE(LabelRef("storeMasked"))
	l.rowsOf(d, ldc, func(m Mem, i, v int) { VMOVUPS(l.acc[i][v], m) })
	JMP(LabelRef("stored"))
	Label("storeMasked")
	l.loadMasks()
	l.rowsOf(d, ldc, func(m Mem, i, v int) {
		if wide {
			VMOVUPS(l.acc[i][v], l.mask[v], m)
		} else {
			VMASKMOVPS(l.acc[i][v], l.b[v], m)
		}
	})
	Label("stored")
}
