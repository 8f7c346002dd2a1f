package cpu

import (
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
		exact.Merge(acc.Uint64s(), k.threads[i].exact[:])
	}
}

func (j *squaresJob) Part(i int) {
	acc, sums := &j.k.threads[i].exact, &j.k.threads[i].sums
	clear(acc[:])
	for {
		c := int(j.next.Add(1)) - 1
		if c >= chunks(len(j.x)) {
			return
		}
		lo, hi := cut(c, len(j.x))
		grains := sums[:(hi-lo+f32.Grain-1)/f32.Grain]
		j.k.path.squares(grains, j.x[lo:hi])
		for _, s := range grains {
			exact.Add(acc[:], s, j.tag)
		}
	}
}

func squares(sums []float64, x []float32) {
	for i := range sums {
		sums[i] = f32.SumSquares(x[i*f32.Grain : min((i+1)*f32.Grain, len(x))])
	}
}
