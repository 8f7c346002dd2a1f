package main

import (
	"fmt"
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

const (
	suffix = "AVX2"
	width  = 8 // floats in a vector
	lanes  = 32
	parts  = lanes / width // vectors in the lanes of a row sum
)

type vec = VecVirtual

func vector() vec { return YMM() }

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

var constants = map[uint32]Mem{}

// bits is a vector constant in memory.
func bits(b uint32) Mem {
	if m, ok := constants[b]; ok {
		return m
	}
	m := GLOBL(fmt.Sprintf("c%08x", b), RODATA|NOPTR)
	for i := range width {
		DATA(4*i, U32(b))
	}
	constants[b] = m
	return m
}

func float(f float32) Mem { return bits(math.Float32bits(f)) }

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
