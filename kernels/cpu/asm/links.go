package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// linker is the pointers of the loop over k. A's rows are reached from row 0 or row 1 with multiples of their distance.
type linker struct {
	*aTile
	p      [2]Register // row 0, row 1
	by     map[int]Register
	ap     Register
	q, bp  Register
	places []place
}

// place is a row's address: from row base on, times·scale rows further.
type place struct{ base, times, scale int }

// places are those of a tile's rows, of which there are at most 12.
var places = []place{{0, 0, 0}, {0, 1, 1}, {0, 1, 2}, {0, 3, 1}, {0, 1, 4}, {0, 5, 1}, {0, 3, 2}, {1, 3, 2}, {0, 1, 8}, {1, 1, 8}, {0, 5, 2}, {1, 5, 2}}

func (l *aTile) newLinker() *linker {
	k := &linker{aTile: l, by: map[int]Register{}, places: places[:len(l.acc)]}
	k.p[0], k.ap, k.q, k.bp = l.load(argA), l.load(argAP), l.load(argB), l.load(argBP)
	for _, at := range k.places {
		if _, ok := k.by[at.times]; !ok && at.times > 0 {
			k.by[at.times] = l.load(argAI)
		}
		if at.base == 1 && k.p[1] == nil {
			k.p[1] = GP64()
			MOVQ(k.p[0], k.p[1])
			ADDQ(k.by[1], k.p[1])
		}
	}
	for _, n := range []int{3, 5} {
		if r, ok := k.by[n]; ok {
			LEAQ(Mem{Base: r, Index: r, Scale: uint8(n - 1)}, r)
		}
	}
	return k
}

// rows continues the chains of rows from up to to by one link.
func (l *linker) rows(from, to int) {
	for v, b := range l.b {
		VMOVUPS(Mem{Base: l.q, Disp: 4 * width * v}, b)
	}
	ADDQ(l.bp, l.q)
	for i := from; i < to; i++ {
		at, x := l.places[i], vector()
		m := Mem{Base: l.p[at.base]}
		if at.times > 0 {
			m.Index, m.Scale = l.by[at.times], uint8(at.scale)
		}
		VBROADCASTSS(m, x)
		for v, b := range l.b {
			VFMADD231PS(b, x, l.acc[i][v])
		}
	}
	for _, p := range l.p {
		if p != nil {
			ADDQ(l.ap, p)
		}
	}
}

// multiply is the loop over k. The last links ask for the rows of C of the next group, whose chains cannot start before they are there: a
// row every few links, and late, since what comes too early may be gone again, as rows of C are often a multiple of 4 KiB apart, and
// then share one set of the first-level cache.
func (l *aTile) multiply() {
	const unroll = 4
	n, late := len(l.acc), 0
	if l.ahead {
		late = unroll * n
	}
	k := l.newLinker()
	left := l.load(argK)
	if n > 1 {
		CMPQ(l.arg(argTriangle), U8(0))
		JGE(LabelRef("common"))
		for i := 1; i < n; i++ {
			k.rows(0, i)
		}
		Label("common")
	}
	SUBQ(U8(unroll+late), left)
	JL(LabelRef("rest"))
	Label("four")
	for range unroll {
		k.rows(0, n)
	}
	SUBQ(U8(unroll), left)
	JGE(LabelRef("four"))
	Label("rest")
	if late > 0 {
		k.late(left, unroll, late)
	}
	ADDQ(U8(unroll), left)
	JZ(LabelRef("done"))
	Label("one")
	k.rows(0, n)
	DECQ(left)
	JNZ(LabelRef("one"))
	Label("done")
	if n > 1 {
		CMPQ(l.arg(argTriangle), U8(0))
		JLE(LabelRef("square"))
		for i := 1; i < n; i++ {
			k.rows(i, n)
		}
		Label("square")
	}
}

// late is the loop over the last links.
func (l *linker) late(left Register, unroll, late int) {
	c, ldc := l.load(argC), l.load(argLDC)
	d := GP64()
	IMUL3Q(U8(len(l.acc)), ldc, d)
	ADDQ(d, c)
	ADDQ(U8(late), left)
	JL(LabelRef("few"))
	Label("late")
	for v := range l.b {
		PREFETCHT0(Mem{Base: c, Disp: 4*width*(v+1) - 4})
	}
	ADDQ(ldc, c)
	for range unroll {
		l.rows(0, len(l.acc))
	}
	SUBQ(U8(unroll), left)
	JGE(LabelRef("late"))
	Label("few")
}
