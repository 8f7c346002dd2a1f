package cpu

import (
	"zeroshard/device"
	"zeroshard/kernels/internal/f32"
)

// path is the inner loops for one instruction set. Slices of one call have equal lengths unless said; dst may be any of the
// sources, whole. Each must give the bits of the portable one, apart from multiply, where a link of a chain may be fused.
type path struct {
	name string

	multiply func(p product, pack []float32)
	banded   func(p product, w band, pack []float32)

	add      func(dst, a, b []float32)
	scale    func(dst []float32, f float32) // dst *= f
	mul      func(dst, a, b []float32)
	gelu     func(y, x []float32)
	geluGrad func(dx, y, dy, x []float32) // y may be nil
	adamw    func(p, g, m, v []float32, c adamwConst)
	sgd      func(p, g, m []float32, c sgdConst) // m may be nil
	squares  func(sums []float64, x []float32)   // of grains; the last may be short
	widen    func(dst []float32, src []uint16, from device.DType)
	narrow   func(dst []uint16, src []float32, to device.DType)

	sum    func(x []float32) float32
	dot    func(x, y []float32) float32
	max    func(x []float32) float32
	expSum func(dst, x []float32, max float32) float32 // dst = exp(x−max), unless nil; the sum
	// scoreGrad: dst = p·(dst − delta)·scale, left to right.
	scoreGrad func(dst, p []float32, delta, scale float32)
	norm      normPath
}

// normPath is the loops of layernorm over a row. b and db may be nil.
type normPath struct {
	squares func(x []float32, mean float32) float32               // Σ(x−mean)²
	apply   func(y, x, w, b []float32, c normConst)               // x̂·w + b
	sums    func(dy, x, w []float32, c normConst) (g, gx float32) // Σdy·w, Σdy·w·x̂
	back    func(dx, dy, x, w []float32, c normConst)             // rstd·(dy·w − meanG − x̂·meanGX), added where c.add
	params  func(dw, db, dy, x []float32, c normConst)            // dw += dy·x̂, db += dy
}

// portable is plain Go.
func portable() *path {
	return &path{
		name:     "portable",
		multiply: multiply, banded: banded,
		add: add, scale: scale, mul: mul,
		gelu: gelu, geluGrad: geluGrad,
		adamw: adamw, sgd: sgd,
		squares: squares,
		sum:     f32.Sum, dot: f32.Dot, max: f32.Max, expSum: expSum, scoreGrad: scoreGrad,
		widen: widen, narrow: narrow,
		norm: normPath{squares: normSquares, apply: normApply, sums: normSums, back: normBack, params: normParams},
	}
}

// Paths names the instruction sets that this machine can run, the best first, "portable" last.
func Paths() (names []string) {
	for _, p := range paths() {
		names = append(names, p.name)
	}
	return names
}
