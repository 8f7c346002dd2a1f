package cpu

import (
	"zeroshard/device"
	"zeroshard/kernels/internal/f32"
	"zeroshard/prng"
)

// path is the inner loops for one instruction set. Slices of one call have equal lengths unless said; dst may be any of the
// sources, whole. Each must give the bits of the portable one, apart from multiply, where a link of a chain may be fused.
type path struct {
	name string

	multiply func(p product, pack []float32)
	// pack, scores, lower and upper are attention's products, see multiplier.
	pack                 func(b packed, dst []float32) packed
	scores, lower, upper func(t tileProduct, pack []float32)
	// softmax scales s, raises highest to its largest, then sets s = exp(s − next) and sums that. It may write behind s,
	// up to a whole turn.
	softmax func(s []float32, scale, highest float32) (next, sum float32)
	// scoreBack: p = exp(p·scale − lse), ds = p·(keep·ds − delta)·scale, p = keep·p, where keep may be nil. It may write behind p
	// and ds and read behind keep, up to a whole turn.
	scoreBack func(p, ds, keep []float32, c scoreConst)
	// keep returns what dropout multiplies n ≤ keepBlock elements from at on by, in buf.
	keep    func(buf *keepBuf, n int, key prng.Key, at uint64, p float32) []float32
	dropout func(dst, x []float32, key prng.Key, at uint64, p float32)

	add       func(dst, a, b []float32)
	addStream func(dst, a, b []float32)            // add past the caches; dst is neither a nor b
	addRows   func(dst, x []float32, ld, rows int) // dst += row after row of x, ld apart
	scale     func(dst []float32, f float32)       // dst *= f
	mul       func(dst, a, b []float32)
	gelu      func(y, x []float32)
	geluGrad  func(dx, y, dy, x []float32) // y may be nil
	adamw     func(p, g, m, v []float32, c adamwConst)
	sgd       func(p, g, m []float32, c sgdConst) // m may be nil
	squares   func(sums []float64, x []float32)   // of grains; the last may be short
	// widen and narrow may write past the caches where stream.
	widen  func(dst []float32, src []uint16, from device.DType, stream bool)
	narrow func(dst []uint16, src []float32, to device.DType, stream bool)

	sum    func(x []float32) float32
	dot    func(x, y []float32) float32
	max    func(x []float32) float32
	expSum func(dst, x []float32, max float32) float32 // dst = exp(x−max), unless nil; the sum
	norm   normPath
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
		multiply: multiply,
		pack:     asIs, scores: multiplier(multiply).scores, lower: multiplier(multiply).lower, upper: multiplier(multiply).upper,
		softmax: softmax, scoreBack: scoreBack, keep: keep, dropout: dropout,
		add: add, addStream: add, addRows: addRows, scale: scale, mul: mul,
		gelu: gelu, geluGrad: geluGrad,
		adamw: adamw, sgd: sgd,
		squares: squares,
		sum:     f32.Sum, dot: f32.Dot, max: f32.Max, expSum: expSum,
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
