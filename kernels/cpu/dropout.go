package cpu

import "zeroshard/prng"

// keepBlock is how many random numbers are drawn at a time. A path may draw more than it was asked for: from the start of a
// block of four numbers, to the end of a turn.
const keepBlock = 128

type keepBuf [keepBlock + 64]float32

func dropout(dst, x []float32, key prng.Key, at uint64, p float32) {
	if p == 0 {
		copy(dst, x)
		return
	}
	var buf keepBuf
	for lo := 0; lo < len(dst); lo += keepBlock {
		hi := min(lo+keepBlock, len(dst))
		mul(dst[lo:hi], x[lo:hi], keep(&buf, hi-lo, key, at+uint64(lo), p))
	}
}

// keep is the portable one, see path.
func keep(buf *keepBuf, n int, key prng.Key, at uint64, p float32) []float32 {
	f := buf[:n]
	key.FillUniform(f, at)
	up := 1 / (1 - p)
	for i, u := range f {
		if u >= p {
			f[i] = up
		} else {
			f[i] = 0
		}
	}
	return f
}
