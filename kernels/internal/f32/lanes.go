package f32

import "math"

// Lanes is the number of partial sums of a row: element i is added to lane i mod 32, i ascending, from +0; then the upper half
// of the lanes is added to the lower half until one is left. It suits vector registers of any width up to 32 floats, and
// its error grows with the length by a 32nd of a plain loop's.
const Lanes = 32

// Fold adds up lanes: the end of every row sum.
func Fold(l *[Lanes]float32) float32 {
	for h := Lanes / 2; h > 0; h /= 2 {
		for i := range h {
			l[i] += l[i+h]
		}
	}
	return l[0]
}

// Sum returns the sum of x, in the order of Lanes.
func Sum(x []float32) float32 {
	var l [Lanes]float32
	for i, v := range x {
		l[i%Lanes] += v
	}
	return Fold(&l)
}

// SumOf is Sum of f(0) … f(n−1).
func SumOf(n int, f func(i int) float32) float32 {
	var l [Lanes]float32
	for i := range n {
		l[i%Lanes] += f(i)
	}
	return Fold(&l)
}

// Dot returns the sum of x[i]·y[i], each product rounded, in the order of Lanes.
func Dot(x, y []float32) float32 {
	var l [Lanes]float32
	y = y[:len(x)]
	for i, v := range x {
		l[i%Lanes] += float32(v * y[i])
	}
	return Fold(&l)
}

// Max returns the largest element, passing over NaN; −Inf where there is none.
func Max(x []float32) float32 {
	m := float32(math.Inf(-1))
	for _, v := range x {
		if v > m {
			m = v
		}
	}
	return m
}

// Sqrt returns √x, rounded once. (The float64 root rounded to float32 is the same number: 53 ≥ 2·24+2.)
func Sqrt(x float32) float32 { return float32(math.Sqrt(float64(x))) }

// MinNormal is the smallest normal float32.
const MinNormal = 0x1p-126

// Flush returns x, or 0 where |x| < MinNormal. Moments of an optimizer decay through the denormals, where a vector unit takes
// ten times as long; a flush that is part of the arithmetic keeps the bits equal on units with and without a mode for it.
func Flush(x float32) float32 {
	if x < MinNormal && x > -MinNormal {
		return 0
	}
	return x
}

// KeyBlock is the number of keys whose scores attention takes into its softmax at a time.
const KeyBlock = 128

// Grain is the number of elements whose squares are summed in float64 before they are summed exactly: shard.Grain.
const Grain = 128

// SquareLanes is Lanes for the sum of squares of a grain, which is kept in float64.
const SquareLanes = 16

// SumSquares returns Σ x² in float64: squares are exact, element i is added to lane i mod 16, the lanes are folded by halves.
func SumSquares(x []float32) float64 {
	var l [SquareLanes]float64
	for i, v := range x {
		d := float64(v)
		l[i%SquareLanes] += float64(d * d)
	}
	for h := SquareLanes / 2; h > 0; h /= 2 {
		for i := range h {
			l[i] += l[i+h]
		}
	}
	return l[0]
}
