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
)

// keep writes what dropout multiplies by, for blocks of four numbers of package prng's Philox. A block has a 64-bit lane in each
// of the vectors of the counter's four words, whose upper halves are garbage: the multiplication does not read them. The order of blocks
// in lanes is such that they come out in order.
func keep() {
	text("keep", "func(dst []float32, c *byte)")
	c := Load(Param("c"), GP64())
	counter := vector()
	VPBROADCASTQ(Mem{Base: c, Disp: keepCounter}, counter)
	first, next := quads("firstBlocks", 0, 1, 2, 3), quads("nextBlocks", 4, 4, 4, 4)
	if wide {
		first, next = quads("firstBlocks8", 0, 2, 1, 3, 4, 6, 5, 7), quads("nextBlocks8", 8, 8, 8, 8, 8, 8, 8, 8)
	}
	VPADDQ(first, counter, counter)
	loop(2*4*width/2, "dst", []string{"dst"}, func(at addr) { // two groups of blocks
		groups := [2][]vec{vectorOf(4), vectorOf(4)}
		for _, g := range groups {
			VMOVUPS(counter, g[0])
			VPSRLQ(U8(32), counter, g[1])
			VPBROADCASTD(Mem{Base: c, Disp: keepHigh}, g[2])
			VPBROADCASTD(Mem{Base: c, Disp: keepHigh + 4}, g[3])
			VPADDQ(next, counter, counter)
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
				factor := vector()
				VMOVUPS(up, factor)
				clearUnless(notLess, p, v, factor)
				VMOVUPS(factor, at("dst", (2*n+h)*width))
			}
		}
	})
	ret()
}

// philox is one round.
func philox(c, k []vec) []vec {
	xor := func(a, b vec) {
		if wide {
			VPXORD(a, b, b)
		} else {
			VPXOR(a, b, b)
		}
	}
	lo, hi := vector(), vector()
	VPMULUDQ(bits(0xD2511F53), c[0], lo)
	VPMULUDQ(bits(0xCD9E8D57), c[2], hi)
	VPSRLQ(U8(32), hi, c[0])
	xor(c[1], c[0])
	xor(k[0], c[0])
	VPSRLQ(U8(32), lo, c[2])
	xor(c[3], c[2])
	xor(k[1], c[2])
	return []vec{c[0], hi, c[2], lo}
}

// blocks brings the words of blocks together: those of even lanes first, by halves.
func blocks(c []vec) [2]vec {
	var odds Op
	if wide {
		k, m := K(), GP32()
		MOVL(U32(0xaaaa), m)
		KMOVW(m, k)
		odds = k
	}
	for i := 0; i < 4; i += 2 {
		if wide {
			VMOVSLDUP(c[i+1], odds, c[i])
			continue
		}
		VPSLLQ(U8(32), c[i+1], c[i+1])
		VPBLENDD(U8(0xaa), c[i+1], c[i], c[i])
	}
	even, odd := vector(), vector()
	VPUNPCKLQDQ(c[2], c[0], even)
	VPUNPCKHQDQ(c[2], c[0], odd)
	out := [2]vec{vector(), vector()}
	if wide {
		VSHUFF64X2(U8(0x44), odd, even, out[0])
		VSHUFF64X2(U8(0xee), odd, even, out[1])
		return out
	}
	VPERM2I128(U8(0x20), odd, even, out[0])
	VPERM2I128(U8(0x31), odd, even, out[1])
	return out
}

var quadConstants = map[string]Mem{}

// quads is a constant of 64-bit lanes.
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
