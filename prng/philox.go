package prng

// Multipliers and Weyl constants of Philox4x32, from the paper.
const (
	mul0, mul1   = 0xD2511F53, 0xCD9E8D57
	weyl0, weyl1 = 0x9E3779B9, 0xBB67AE85
	rounds       = 10
)

// philox is Philox4x32-10: a counter of four words, lowest first, under a key of two.
func philox(c [4]uint32, k0, k1 uint32) [4]uint32 {
	c0, c1, c2, c3 := c[0], c[1], c[2], c[3]
	for range rounds {
		p0, p1 := uint64(mul0)*uint64(c0), uint64(mul1)*uint64(c2)
		c0, c1, c2, c3 = uint32(p1>>32)^c1^k0, uint32(p1), uint32(p0>>32)^c3^k1, uint32(p0)
		k0 += weyl0
		k1 += weyl1
	}
	return [4]uint32{c0, c1, c2, c3}
}

// block is the b-th four words of k's stream.
func (k Key) block(b uint64) [4]uint32 {
	return philox([4]uint32{uint32(b), uint32(b >> 32), uint32(k.Hi), uint32(k.Hi >> 32)}, uint32(k.Lo), uint32(k.Lo>>32))
}
