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
func (c *keepArgs) draw(buf *keepBuf, n int, at uint64) []float32 {
	first := int(at % philoxWords)
	c.counter = at / philoxWords
	keepAVX2(buf[:whole(first+n+rowTurn-1, rowTurn)], c)
	return buf[first:]
}

func vecKeep(buf *keepBuf, n int, key prng.Key, at uint64, p float32) []float32 {
	c := newKeepArgs(key, p)
	return c.draw(buf, n, at)
}

func vecDropout(dst, x []float32, key prng.Key, at uint64, p float32) {
	if p == 0 {
		copy(dst, x)
		return
	}
	var buf keepBuf
	c := newKeepArgs(key, p)
	for lo := 0; lo < len(dst); lo += keepBlock {
		hi := min(lo+keepBlock, len(dst))
		vecMul(dst[lo:hi], x[lo:hi], c.draw(&buf, hi-lo, at+uint64(lo)))
	}
}
