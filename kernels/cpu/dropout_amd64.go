package cpu

import "zeroshard/prng"

// Philox4x32, see package prng.
const (
	philoxRounds           = 10
	philoxWords            = 4
	philoxKey0, philoxKey1 = 0x9E3779B9, 0xBB67AE85 // what the key's words gain in a round
)

// keepArgs is the generator and the rate as assembly wants them.
type keepArgs struct {
	rounds  [philoxRounds][2]uint32
	counter uint64 // the first block
	high    [2]uint32
	p, up   float32
}

func newKeepArgs(key prng.Key, p float32) (c keepArgs) {
	k0, k1 := uint32(key.Lo), uint32(key.Lo>>32)
	for i := range c.rounds {
		c.rounds[i] = [2]uint32{k0, k1}
		k0 += philoxKey0
		k1 += philoxKey1
	}
	c.high = [2]uint32{uint32(key.Hi), uint32(key.Hi >> 32)}
	c.p, c.up = p, 1/(1-p)
	return c
}

// draw is the factors of n elements from at on. More follow them.
func (s set) draw(c *keepArgs, buf *keepBuf, n int, at uint64) []float32 {
	first, turn := int(at%philoxWords), 4*s.width()
	c.counter = at / philoxWords
	if s == avx512 {
		keepAVX512(buf[:whole(first+n+turn-1, turn)], c)
	} else {
		keepAVX2(buf[:whole(first+n+turn-1, turn)], c)
	}
	return buf[first:]
}

func (s set) keep(buf *keepBuf, n int, key prng.Key, at uint64, p float32) []float32 {
	c := newKeepArgs(key, p)
	return s.draw(&c, buf, n, at)
}

func (s set) dropout(dst, x []float32, key prng.Key, at uint64, p float32) {
	if p == 0 {
		copy(dst, x)
		return
	}
	var buf keepBuf
	c := newKeepArgs(key, p)
	for lo := 0; lo < len(dst); lo += keepBlock {
		hi := min(lo+keepBlock, len(dst))
		s.mul(dst[lo:hi], x[lo:hi], s.draw(&c, &buf, hi-lo, at+uint64(lo)))
	}
}
