package cpu

import "zeroshard/kernels/internal/f32"

// path is the inner loops for one instruction set. Slices of one call have equal lengths unless said; dst may be any of the
// sources, whole. Each must give the bits of the portable one, apart from multiply, where a link of a chain may be fused.
type path struct {
	name string

	multiply func(p product, pack []float32)

	add      func(dst, a, b []float32)
	scale    func(dst []float32, f float32) // dst *= f
	mul      func(dst, a, b []float32)
	gelu     func(y, x []float32)
	geluGrad func(dx, y, dy, x []float32) // y may be nil
	adamw    func(p, g, m, v []float32, c *adamwConst)
	sgd      func(p, g, m []float32, c *sgdConst) // m may be nil
	squares  func(x []float32) float64            // at most a grain

	sum    func(x []float32) float32
	dot    func(x, y []float32) float32
	max    func(x []float32) float32
	expSum func(dst, x []float32, max float32) float32 // dst = exp(x−max), unless nil; the sum
	// scoreGrad: dst = p·(dst − delta)·scale, left to right.
	scoreGrad func(dst, p []float32, delta, scale float32)
	norm      normPath
}

// normPath is the loops of layernorm over a row.
type normPath struct {
	squares func(x []float32, mean float32) float32                      // Σ(x−mean)²
	apply   func(y, x, w, b []float32, mean, rstd float32)               // b may be nil
	sums    func(dy, x, w []float32, mean, rstd float32) (g, gx float32) // Σdy·w, Σdy·w·x̂
	back    func(dx, dy, x, w []float32, c normConst)
	params  func(dw, db, dy, x []float32, mean, rstd float32) // dw += dy·x̂, db += dy; db may be nil
}

var portable = path{
	name:     "portable",
	multiply: multiply,
	add:      add, scale: scale, mul: mul,
	gelu: gelu, geluGrad: geluGrad,
	adamw: adamw, sgd: sgd,
	squares: f32.SumSquares,
	sum:     f32.Sum, dot: f32.Dot, max: f32.Max, expSum: expSum, scoreGrad: scoreGrad,
	norm: normPath{squares: normSquares, apply: normApply, sums: normSums, back: normBack, params: normParams},
}
