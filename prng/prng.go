package prng

import (
	"math/bits"

	"zeroshard/internal/invariants"
)

// Key names a stream of random numbers. The zero Key is a key like any other.
type Key struct{ Hi, Lo uint64 }

// Keys are derived by the same generator under a changed key, so that a derived key is never a number of its parent's stream,
// and so that seeds, numbers and names lead to different places.
const (
	seedDomain  = 0x5eed_0000_0000_0001
	indexDomain = 0x1d5e_0000_0000_0002
	nameDomain  = 0x4a3e_0000_0000_0003
)

// derive is a bijection of i for fixed k and domain.
func (k Key) derive(domain, i uint64) Key {
	w := Key{k.Hi, k.Lo ^ domain}.block(i)
	return Key{Hi: uint64(w[3])<<32 | uint64(w[2]), Lo: uint64(w[1])<<32 | uint64(w[0])}
}

// New returns the key of a seed; different seeds give different keys.
func New(seed uint64) Key { return Key{}.derive(seedDomain, seed) }

// Sub returns the i-th key under k: one per step, leaf, unit, site. Different i give different keys.
func (k Key) Sub(i uint64) Key { return k.derive(indexDomain, i) }

// Named returns the key under k for a name, as for a parameter's initial values.
func (k Key) Named(name string) Key {
	for rest := name; len(rest) > 0; {
		n, v := min(8, len(rest)), uint64(0)
		for i := range n {
			v |= uint64(rest[i]) << (8 * i)
		}
		k, rest = k.derive(nameDomain, v), rest[n:]
	}
	return k.derive(nameDomain, uint64(len(name))) // tells "a" from "a\x00"
}

// Uint64 returns the i-th number of k, uniform over all values.
func (k Key) Uint64(i uint64) uint64 {
	w := k.block(i / 2)
	j := i % 2 * 2
	return uint64(w[j+1])<<32 | uint64(w[j])
}

// Intn returns the i-th number of k as an int in [0, n), n > 0. The probability of a value is within 2⁻⁶⁴ of 1/n.
func (k Key) Intn(i uint64, n int) int {
	invariants.Check(n > 0, "prng: Intn of %d values", n)
	hi, _ := bits.Mul64(k.Uint64(i), uint64(n))
	return int(hi)
}

// Uniform returns the i-th uniform number of k, in [0, 1): a multiple of 2⁻²⁴, so exact in float32.
func (k Key) Uniform(i uint64) float32 { return unit(k.block(i / 4)[i%4]) }

func unit(w uint32) float32 { return float32(w>>8) * 0x1p-24 }

// FillUniform sets dst[j] = Uniform(i+j).
func (k Key) FillUniform(dst []float32, i uint64) {
	for len(dst) > 0 {
		w := k.block(i / 4)
		n := 0
		for j := i % 4; j < 4 && n < len(dst); j++ {
			dst[n] = unit(w[j])
			n++
		}
		dst, i = dst[n:], i+uint64(n)
	}
}

// Normal returns the i-th standard normal number of k. Its largest size is √(2·32·ln 2) ≈ 6.66.
func (k Key) Normal(i uint64) float32 {
	w := k.block(i / 4)
	j := i % 4 / 2 * 2
	a, b := boxMuller(w[j], w[j+1])
	if i%2 == 0 {
		return a
	}
	return b
}

// FillNormal sets dst[j] = Normal(i+j).
func (k Key) FillNormal(dst []float32, i uint64) {
	for len(dst) > 0 {
		w := k.block(i / 4)
		var v [4]float32
		v[0], v[1] = boxMuller(w[0], w[1])
		v[2], v[3] = boxMuller(w[2], w[3])
		n := copy(dst, v[i%4:])
		dst, i = dst[n:], i+uint64(n)
	}
}
