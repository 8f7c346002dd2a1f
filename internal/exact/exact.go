package exact

import (
	"math"
	"math/bits"
)

const (
	valueWords = 34
	flagWord   = valueWords
	// Words is the length of an accumulator in uint64.
	Words = valueWords + 1
)

// The last word: flags above, the tag in the low 32 bits.
const (
	flagNaN    = 1 << 32
	flagPosInf = 1 << 33
	flagNegInf = 1 << 34
	flagMask   = flagNaN | flagPosInf | flagNegInf
	tagMask    = 1<<32 - 1
)

// Add adds x to acc ([Words]). An x that is not finite sets a flag and marks acc with tag: the smallest tag other than 0
// that was ever given with such an x stays, so that the mark, like the sum, does not depend on order.
func Add(acc []uint64, x float64, tag uint32) {
	a := (*[Words]uint64)(acc)
	b := math.Float64bits(x)
	exp, mant := b>>52&0x7ff, b&(1<<52-1)
	switch exp {
	case 0x7ff:
		a[flagWord] = mergeFlags(a[flagWord], flagOf(b)|uint64(tag))
		return
	case 0: // zero or denormal: the mantissa counts in units of the lowest bit
	default: // the hidden bit; the mantissa stands exp-1 bits above the lowest
		mant |= 1 << 52
		exp--
	}
	w, off := exp/64, exp%64
	lo, hi := mant<<off, mant>>(64-off) // off = 0: Go's shift by 64 gives 0, as wanted
	if b>>63 == 0 {
		addAt(a, w, lo, hi)
	} else {
		subAt(a, w, lo, hi)
	}
}

func addAt(a *[Words]uint64, w, lo, hi uint64) {
	var c uint64
	a[w], c = bits.Add64(a[w], lo, 0)
	a[w+1], c = bits.Add64(a[w+1], hi, c)
	for w += 2; c != 0 && w < valueWords; w++ {
		a[w], c = bits.Add64(a[w], 0, c)
	}
}

func subAt(a *[Words]uint64, w, lo, hi uint64) {
	var c uint64
	a[w], c = bits.Sub64(a[w], lo, 0)
	a[w+1], c = bits.Sub64(a[w+1], hi, c)
	for w += 2; c != 0 && w < valueWords; w++ {
		a[w], c = bits.Sub64(a[w], 0, c)
	}
}

// flagOf is the flag for a NaN or an infinity with bits b.
func flagOf(b uint64) uint64 {
	switch {
	case b&(1<<52-1) != 0:
		return flagNaN
	case b>>63 == 0:
		return flagPosInf
	}
	return flagNegInf
}

// mergeFlags unites two flag words: all flags, and the smallest tag that is not 0.
func mergeFlags(a, b uint64) uint64 {
	tag := min(a&tagMask, b&tagMask)
	if tag == 0 {
		tag = max(a&tagMask, b&tagMask)
	}
	return (a|b)&flagMask | tag
}

// Merge adds accumulator src to accumulator dst: afterwards dst is as if all that was added to src had been added to it too.
func Merge(dst, src []uint64) {
	d, s := (*[Words]uint64)(dst), (*[Words]uint64)(src)
	var c uint64
	for i := range valueWords {
		d[i], c = bits.Add64(d[i], s[i], c)
	}
	d[flagWord] = mergeFlags(d[flagWord], s[flagWord])
}

// Finite reports whether nothing but finite values was added.
func Finite(acc []uint64) bool { return acc[flagWord]&flagMask == 0 }

// Tag returns the smallest tag that came with a value that was not finite, 0 if there was none.
func Tag(acc []uint64) uint32 { return uint32(acc[flagWord] & tagMask) }

// Round returns the sum, rounded once to nearest even: NaN or ±Inf by the flags as IEEE addition gives them, ±Inf too where a
// finite sum is too large for a float64. A sum of exactly zero is +0.
func Round(acc []uint64) float64 {
	switch flags := acc[flagWord] & flagMask; {
	case flags == 0:
		return roundFinite([valueWords]uint64(acc))
	case flags == flagPosInf:
		return math.Inf(1)
	case flags == flagNegInf:
		return math.Inf(-1)
	}
	return math.NaN()
}

// roundFinite takes its number by value, since it negates it.
func roundFinite(v [valueWords]uint64) float64 {
	sign := v[valueWords-1] & (1 << 63)
	if sign != 0 {
		var c uint64
		for i := range v {
			v[i], c = bits.Sub64(0, v[i], c)
		}
	}
	top := valueWords - 1
	for top > 0 && v[top] == 0 {
		top--
	}
	// The mantissa is the 53 bits from bit `shift` up. As bits of a float64 it has the hidden bit at 52, which counts as 1 in the
	// exponent field, so shift<<52 + mant is the number; below 2⁵³ (shift 0) that holds for denormals too, and
	// a carry out of the mantissa by rounding up moves into the exponent by itself.
	shift := 64*top + bits.Len64(v[top]) - 53
	if shift <= 0 {
		return math.Float64frombits(sign | v[0])
	}
	w, off := shift/64, uint(shift%64)
	mant := v[w] >> off
	if off > 11 && w+1 < valueWords {
		mant |= v[w+1] << (64 - off)
	}
	mant &= 1<<53 - 1
	if half, rest := below(&v, shift); half && (rest || mant&1 == 1) {
		mant++
	}
	b := uint64(shift)<<52 + mant
	if b >= 0x7ff<<52 {
		b = 0x7ff << 52
	}
	return math.Float64frombits(sign | b)
}

// below tells of the bits under bit shift (> 0): the first of them, and whether any of the others is set.
func below(v *[valueWords]uint64, shift int) (half, rest bool) {
	w, off := (shift-1)/64, uint((shift-1)%64)
	half = v[w]>>off&1 == 1
	rest = v[w]&(1<<off-1) != 0
	for i := 0; i < w && !rest; i++ {
		rest = v[i] != 0
	}
	return half, rest
}
