package kerneltest

import (
	"zeroshard/device"
	"zeroshard/internal/exact"
	"zeroshard/kernels"
)

// lengths has the tails of every vector width and one length that is worth several threads.
var lengths = []int{0, 1, 3, 7, 8, 15, 16, 17, 31, 33, 64, 127, 128, 129, 1000, 70001}

func vectorTests() (tests list) {
	for _, n := range lengths {
		tests.vector(n)
	}
	tests.add(func(m *mem) func(Kernels) {
		a := kernels.AdamW{P: m.f32(100), G: m.f32(100), M: m.f32(100), V: m.f32(100), Control: m.of(1, 1), LR: 1, C1: 1, C2: 1}
		s := kernels.SGD{P: a.P, G: a.G, M: a.M, Control: a.Control, LR: 1}
		return func(k Kernels) { k.AdamW(nil, a); k.SGD(nil, s) }
	}, "AdamW/skip/100")
	for _, n := range []int{0, 1, 9, 31, 257, 70001} {
		tests.casts(n)
	}
	return tests
}

// vector is of n elements.
func (l *list) vector(n int) {
	add := func(name string, n int, call func(m *mem) func(Kernels)) { l.add(call, "%s/%d", name, n) }
	add("Zero", n, func(m *mem) func(Kernels) {
		x := m.f32(n)
		return func(k Kernels) { k.Zero(nil, x) }
	})
	add("Add", n, func(m *mem) func(Kernels) {
		d, a, b := m.f32(n), m.f32(n), m.f32(n)
		return func(k Kernels) { k.Add(nil, d, a, b); k.Add(nil, a, a, b); k.Sum(nil, b, d, b); k.Sum(nil, d, d, d) }
	})
	add("SumSquares", n, func(m *mem) func(Kernels) {
		acc, x := m.u64(exact.Words), m.f32(n)
		return func(k Kernels) { k.SumSquares(nil, acc, x, 7); k.SumSquares(nil, acc, x, 3) }
	})
	add("AdamW", n, func(m *mem) func(Kernels) {
		a := kernels.AdamW{P: m.f32(n), G: m.f32(n), M: m.f32(n), V: m.positive(n), Control: m.of(0.37, 0),
			LR: 3e-4, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, Decay: 0.1, C1: 0.19, C2: 0.0975}
		return func(k Kernels) { k.AdamW(nil, a); k.AdamW(nil, a) }
	})
	add("SGD", n, func(m *mem) func(Kernels) {
		a := kernels.SGD{P: m.f32(n), G: m.f32(n), M: m.f32(n), Control: m.of(0.37, 0), LR: 0.1, Momentum: 0.9, Decay: 0.01}
		plain := a
		plain.M = kernels.Buffer{}
		return func(k Kernels) { k.SGD(nil, a); k.SGD(nil, plain) }
	})
}

// casts is of n elements between all types.
func (l *list) casts(n int) {
	types := []device.DType{device.F32, device.BF16, device.F16}
	for _, from := range types {
		for _, to := range types {
			l.add(func(m *mem) func(Kernels) {
				src, dst := m.half(n, from), m.buffer(n, to)
				if from == device.F32 {
					src = m.f32(n)
				}
				return func(k Kernels) { k.Cast(nil, dst, src) }
			}, "Cast/%v to %v/%d", from, to, n)
		}
	}
}
