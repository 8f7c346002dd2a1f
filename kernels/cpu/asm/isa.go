package main

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// isa is an instruction set.
type isa struct {
	suffix string
	width  int // floats in a vector
	// A tile of a product is rows by vectors.
	rows, vectors int
}

// AVX512 is F, BW, DQ and VL.
var sets = []isa{{"AVX2", 8, 6, 2}, {"AVX512", 16, 12, 2}}

// The set in use.
var (
	set   isa
	width int
	wide  bool // vectors of 512 bits, with masks in registers of their own
	parts int  // vectors in the lanes of a row sum
)

func use(s isa) { set, width, wide, parts = s, s.width, s.width == 16, lanes/s.width }

// Elements of one turn: of cheap loops, and of those along rows and with an exp.
const (
	turn  = 16
	lanes = 32
)

type vec = VecVirtual

func vector() vec {
	if wide {
		return ZMM()
	}
	return YMM()
}

func vectorOf(n int) []vec {
	v := make([]vec, n)
	for i := range v {
		v[i] = vector()
	}
	return v
}

func zero(v ...vec) {
	for _, v := range v {
		VXORPS(v, v, v)
	}
}

// text starts a function.
func text(name, sig string) {
	TEXT(name+set.suffix, NOSPLIT, sig)
	hoisted = map[uint32]vec{}
}

// broadcast is parameter name in all lanes.
func broadcast(name string) vec {
	v := vector()
	addr, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	VBROADCASTSS(addr.Addr, v)
	return v
}

var (
	constants = map[uint32]Mem{}
	hoisted   map[uint32]vec // constants in registers, of this function
)

// bits is a vector constant: in memory, or where vectors are wide in a register, to which it is brought here unless hoist was.
func bits(b uint32) Op {
	m, ok := constants[b]
	if !ok {
		m = GLOBL(fmt.Sprintf("c%08x", b), RODATA|NOPTR)
		for i := range 8 {
			DATA(4*i, U32(b))
		}
		constants[b] = m
	}
	if !wide {
		return m
	}
	if v, ok := hoisted[b]; ok {
		return v
	}
	v := vector()
	VBROADCASTSS(m, v)
	return v
}

func float(f float32) Op { return bits(math.Float32bits(f)) }

// hoist brings constants to registers ahead of a loop, where there are enough.
func hoist(f ...float32) {
	if wide {
		for _, f := range f {
			if _, ok := hoisted[math.Float32bits(f)]; !ok {
				hoisted[math.Float32bits(f)] = float(f).(vec)
			}
		}
	}
}

// clearUnless sets v to 0 where not "x p c".
func clearUnless(p U8, c Op, x, v vec) {
	if wide {
		k := K()
		VCMPPS(p, c, x, k)
		VMOVAPS_Z(v, k, v)
		return
	}
	t := vector()
	VCMPPS(p, c, x, t)
	VANDPS(t, v, v)
}

// replace sets v to other where "x p c".
func replace(p U8, c Op, x vec, other Op, v vec) {
	if wide {
		k := K()
		VCMPPS(p, c, x, k)
		VMOVAPS(other, k, v)
		return
	}
	t := vector()
	VCMPPS(p, c, x, t)
	VBLENDVPS(t, other, v, v)
}

// addr gives the address of element elem of the current turn of a slice.
type addr = func(name string, elem int) Mem

// loop is one over slices of floats: body gets, for each name of ptrs, the address of the current element. step is the elements
// of one turn, n the parameter whose length counts.
func loop(step int, n string, ptrs []string, body func(at addr)) { loopNamed("", step, n, ptrs, body) }

// loopNamed is loop where a function has several.
func loopNamed(name string, step int, n string, ptrs []string, body func(at addr)) {
	base := map[string]Register{}
	for _, p := range ptrs {
		base[p] = Load(Param(p).Base(), GP64())
	}
	end := Load(Param(n).Len(), GP64())
	i := GP64()
	XORQ(i, i)
	JMP(LabelRef("test" + name))
	Label("turn" + name)
	body(func(name string, elem int) Mem { return Mem{Base: base[name], Index: i, Scale: 4, Disp: 4 * elem} })
	ADDQ(U32(uint32(step)), i)
	Label("test" + name)
	CMPQ(i, end)
	JL(LabelRef("turn" + name))
}

// each is a loop whose turns take one vector after the other.
func each(n string, ptrs []string, body func(at addr, e int)) {
	loop(turn, n, ptrs, func(at addr) {
		for e := 0; e < turn; e += width {
			body(at, e)
		}
	})
}

// pairs is a loop of lanes elements a turn, two vectors side by side: what they wait for does not hold up the other.
func pairs(n string, ptrs []string, body func(at addr, e int)) {
	loop(lanes, n, ptrs, func(at addr) {
		for e := 0; e < lanes; e += 2 * width {
			body(at, e)
		}
	})
}

func ret() {
	VZEROUPPER()
	RET()
}

// Predicates of VCMPPS. Operands are in Go's order: cmp(p, b, a) is "a p b".
const (
	lessThan    = U8(1)
	unordered   = U8(3)
	notLess     = U8(5)
	greaterThan = U8(14)
)
