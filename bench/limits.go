package bench

import (
	"zeroshard/bench/internal/limit"
	"zeroshard/device"
	"zeroshard/kernels"
)

// parts is a loop as a task.
type parts func(i int)

func (p parts) Part(i int) { p(i) }

// each is work that runs part once on every thread.
func each(pool kernels.Pool, part parts) work {
	return func() error {
		pool.Run(pool.Threads(), part)
		return nil
	}
}

// cut is part i of n things dealt to parts in multiples of unit.
func cut(n, i, parts, unit int) (lo, hi int) {
	share := (n + parts*unit - 1) / (parts * unit) * unit
	return min(i*share, n), min((i+1)*share, n)
}

// fmaTurns is one run of the multiply-add loop on a thread: some 2 ms, long against the start of a thread.
const fmaTurns = 1 << 20

// fmaLoop is the limit of arithmetic; flops is what one run of it computes.
func fmaLoop(pool kernels.Pool) (run work, flops float64) {
	return each(pool, func(int) { limit.FMA(fmaTurns) }), float64(fmaTurns) * limit.Flops * float64(pool.Threads())
}

// addLoop is the limit of traffic: x += y with x and y of bytes together. moved is the bytes that one run reads and writes.
func addLoop(a *arena, pool kernels.Pool, bytes int) (run work, moved float64, err error) {
	n := max(bytes/8, 1)
	buf, err := a.floats(n, n)
	if err != nil {
		return nil, 0, err
	}
	x, y := buf[0].Float32s(), buf[1].Float32s()
	run = each(pool, func(i int) {
		lo, hi := cut(n, i, pool.Threads(), 1024)
		limit.Add(x[lo:hi], y[lo:hi])
	})
	return run, 12 * float64(n), nil
}

// readLoop is what a kernel that writes nothing can reach: on one thread often less than x += y, whose writes come beside its reads.
func readLoop(a *arena, pool kernels.Pool, bytes int) (run work, moved float64, err error) {
	n := max(bytes/4, 1)
	buf, err := a.floats(n)
	if err != nil {
		return nil, 0, err
	}
	x := buf[0].Float32s()
	run = each(pool, func(i int) {
		lo, hi := cut(n, i, pool.Threads(), 1024)
		limit.Read(x[lo:hi])
	})
	return run, 4 * float64(n), nil
}

// copyLoops are the ways to copy bytes bytes; moved is the bytes that one run reads and writes.
func copyLoops(a *arena, pool kernels.Pool, bytes int) (runs []work, moved float64, err error) {
	n := max(bytes/4, 1)
	buf, err := a.floats(n, n)
	if err != nil {
		return nil, 0, err
	}
	dst, src := buf[0].Raw(), buf[1].Raw()
	for _, c := range limit.Copiers() {
		runs = append(runs, each(pool, func(i int) {
			lo, hi := cut(len(dst), i, pool.Threads(), 4096)
			c.Copy(dst[lo:hi], src[lo:hi])
		}))
	}
	return runs, 2 * float64(len(dst)), nil
}

// arena gives out a device's memory until it is closed.
type arena struct {
	dev   device.Device
	count int
}

// floats returns buffers of so many elements each, filled with numbers in (−1/2, 1/2).
func (a *arena) floats(lengths ...int) ([]device.Buffer, error) {
	out := make([]device.Buffer, len(lengths))
	for i, n := range lengths {
		b, err := a.buffer(n, device.F32)
		if err != nil {
			return nil, err
		}
		x := b.Float32s()
		for k := range x {
			x[k] = float32(k%251+1)/252 - 0.5
		}
		out[i] = b
	}
	return out, nil
}

// buffer returns zeroed memory. Blocks of a device begin at pages; each buffer begins some lines further into its own, since loads and
// stores whose addresses agree in their last 12 bits get in each other's way.
func (a *arena) buffer(n int, d device.DType) (device.Buffer, error) {
	a.count++
	off := int64(a.count%8) * 576
	m, err := a.dev.Alloc(off + int64(n)*int64(d.Size()))
	return device.Buffer{Mem: m, Off: off, Len: n, DType: d}, err
}

func (a *arena) close() error { return a.dev.Close() }
