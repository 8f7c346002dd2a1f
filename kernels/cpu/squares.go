package cpu

import (
	"math"
	"sync/atomic"

	"zeroshard/device"
	"zeroshard/internal/exact"
	"zeroshard/kernels"
	"zeroshard/kernels/internal/f32"
)

// squaresJob adds grains' sums of squares exactly, each thread into its own accumulator: exact sums have no order.
type squaresJob struct {
	k    *Kernels
	x    []float32
	tag  uint32
	next atomic.Int64
}

// SumSquares: see kernels.Vector.
func (k *Kernels) SumSquares(_ device.Stream, acc, x kernels.Buffer, tag uint32) {
	j := &k.jobs.squares
	j.x, j.tag = x.Float32s(), tag
	j.next.Store(0)
	parts := min(chunks(x.Len), len(k.threads))
	k.run(parts, j)
	for i := range parts {
		exact.Merge(acc.Uint64s(), k.threads[i].grains.acc[:])
	}
}

func (j *squaresJob) Part(i int) {
	g := &j.k.threads[i].grains
	clear(g.acc[:])
	for {
		c := int(j.next.Add(1)) - 1
		if c >= chunks(len(j.x)) {
			return
		}
		lo, hi := cut(c, len(j.x))
		sums := g.sums[:(hi-lo+f32.Grain-1)/f32.Grain]
		j.k.path.squares(sums, j.x[lo:hi])
		g.add(sums, j.tag)
	}
}

// grains adds up the sums of a chunk's grains. Those of equal exponent are added as integers first, whose sum is exact too: of some hundred
// sums, few are left to add to the long accumulator.
type grains struct {
	sums [chunk / f32.Grain]float64
	acc  [exact.Words]uint64
	bins [lastExponent - firstExponent]uint64 // mantissas by exponent
}

// Exponents, as stored, of the sums of squares of float32 that are not 0: from 2⁻²⁹⁸ to below 2²⁶³, with room.
const (
	firstExponent = 1023 - 300
	lastExponent  = 1023 + 270
	mantissaBits  = 52
)

const _ = uint(1<<(64-mantissaBits-1) - chunk/f32.Grain) // must not be negative: a bin holds all of a chunk

func (g *grains) add(sums []float64, tag uint32) {
	lo, hi := len(g.bins), -1
	for _, s := range sums {
		b := math.Float64bits(s)
		e := int(b>>mantissaBits) - firstExponent
		if uint(e) >= uint(len(g.bins)) { // 0, NaN, Inf
			exact.Add(g.acc[:], s, tag)
			continue
		}
		g.bins[e] += b&(1<<mantissaBits-1) | 1<<mantissaBits
		lo, hi = min(lo, e), max(hi, e)
	}
	for e := lo; e <= hi; e++ {
		v, unit := g.bins[e], e+firstExponent-1023-mantissaBits
		g.bins[e] = 0
		exact.Add(g.acc[:], math.Ldexp(float64(v>>32), unit+32), tag) // halves, as floats, are exact
		exact.Add(g.acc[:], math.Ldexp(float64(v&(1<<32-1)), unit), tag)
	}
}

func squares(sums []float64, x []float32) {
	for i := range sums {
		sums[i] = f32.SumSquares(x[i*f32.Grain : min((i+1)*f32.Grain, len(x))])
	}
}
