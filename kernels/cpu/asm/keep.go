package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
)

// Offsets in keepArgs.
const (
	keepRounds  = 0                 // the two words of each round's key
	keepCounter = keepRounds + 10*8 // first block
	keepHigh    = keepCounter + 8   // upper half of the counter, by words
	keepRate    = keepHigh + 2*4    // p
	keepUp      = keepRate + 4      // 1/(1-p)
	keepTurn    = 2 * 4 * 4         // numbers of two groups of four blocks
)

// keep writes what dropout multiplies by, for blocks of four numbers of package prng's Philox. A block has a 64-bit lane in each
// of the vectors of the counter's four words, whose upper halves are garbage: the multiplication does not read them.
func keep() {
	TEXT("keep"+suffix, NOSPLIT, "func(dst []float32, c *byte)")
	c := Load(Param("c"), GP64())
	counter := vector()
	VPBROADCASTQ(Mem{Base: c, Disp: keepCounter}, counter)
	VPADDQ(quads("firstBlocks", 0, 1, 2, 3), counter, counter)
	loop(keepTurn, "dst", []string{"dst"}, func(at addr) {
		groups := [2][]vec{vectorOf(4), vectorOf(4)}
		for _, g := range groups {
			VMOVDQU(counter, g[0])
			VPSRLQ(U8(32), counter, g[1])
			VPBROADCASTD(Mem{Base: c, Disp: keepHigh}, g[2])
			VPBROADCASTD(Mem{Base: c, Disp: keepHigh + 4}, g[3])
			VPADDQ(quads("nextBlocks", 4, 4, 4, 4), counter, counter)
		}
		for round := range 10 {
			k := vectorOf(2)
			for i := range k {
				VPBROADCASTD(Mem{Base: c, Disp: keepRounds + 8*round + 4*i}, k[i])
			}
			for n, g := range groups {
				groups[n] = philox(g, k)
			}
		}
		p, up := vector(), vector()
		VBROADCASTSS(Mem{Base: c, Disp: keepRate}, p)
		VBROADCASTSS(Mem{Base: c, Disp: keepUp}, up)
		for n, g := range groups {
			for h, v := range blocks(g) {
				VPSRLD(U8(8), v, v)
				VCVTDQ2PS(v, v)
				VMULPS(float(0x1p-24), v, v)
				VCMPPS(notLess, p, v, v)
				VANDPS(up, v, v)
				VMOVUPS(v, at("dst", 16*n+8*h))
			}
		}
	})
	ret()
}

// philox is one round.
func philox(c, k []vec) []vec {
	lo, hi := vector(), vector()
	VPMULUDQ(bits(0xD2511F53), c[0], lo)
	VPMULUDQ(bits(0xCD9E8D57), c[2], hi)
	VPSRLQ(U8(32), hi, c[0])
	VPXOR(c[1], c[0], c[0])
	VPXOR(k[0], c[0], c[0])
	VPSRLQ(U8(32), lo, c[2])
	VPXOR(c[3], c[2], c[2])
	VPXOR(k[1], c[2], c[2])
	return []vec{c[0], hi, c[2], lo}
}

// blocks brings the words of four blocks in order.
func blocks(c []vec) [2]vec {
	for i := 0; i < 4; i += 2 {
		VPSLLQ(U8(32), c[i+1], c[i+1])
		VPBLENDD(U8(0xaa), c[i+1], c[i], c[i])
	}
	even, odd := vector(), vector()
	VPUNPCKLQDQ(c[2], c[0], even)
	VPUNPCKHQDQ(c[2], c[0], odd)
	out := [2]vec{vector(), vector()}
	VPERM2I128(U8(0x20), odd, even, out[0])
	VPERM2I128(U8(0x31), odd, even, out[1])
	return out
}

var quadConstants = map[string]Mem{}

// quads is a constant of four 64-bit lanes.
func quads(name string, v ...uint64) Mem {
	m, ok := quadConstants[name]
	if !ok {
		m = GLOBL(name, RODATA|NOPTR)
		for i, q := range v {
			DATA(8*i, U64(q))
		}
		quadConstants[name] = m
	}
	return m
}
