package exact_test

import (
	"encoding/binary"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"zeroshard/internal/exact"
)

func sum(xs ...float64) []uint64 {
	acc := make([]uint64, exact.Words)
	for _, x := range xs {
		exact.Add(acc, x, 0)
	}
	return acc
}

// bigSum is the second opinion: math/big with enough bits for every float64 at once, rounded once.
func bigSum(xs []float64) float64 {
	s := new(big.Float).SetPrec(4096)
	for _, x := range xs {
		s.Add(s, new(big.Float).SetFloat64(x))
	}
	f, _ := s.Float64()
	return f
}

func TestRound(t *testing.T) {
	const tiny, huge = math.SmallestNonzeroFloat64, math.MaxFloat64
	inf := math.Inf(1)
	for _, tc := range []struct {
		name string
		in   []float64
		want float64
	}{
		{"nothing", nil, 0},
		{"negative zero", []float64{math.Copysign(0, -1)}, 0},
		{"one", []float64{1}, 1},
		{"minus one", []float64{-1}, -1},
		{"cancels", []float64{huge, 1, -huge, -1}, 0},
		{"survives cancellation", []float64{1e300, tiny, -1e300}, tiny},
		{"smallest denormals", []float64{tiny, tiny, tiny}, 3 * tiny},
		{"denormals become normal", []float64{0x1p-1022 - tiny, tiny}, 0x1p-1022},
		{"tie to even, down", []float64{0x1p53, 1}, 0x1p53},
		{"tie to even, up", []float64{0x1p53 + 2, 1}, 0x1p53 + 4},
		{"just above a tie", []float64{0x1p53, 1, tiny}, 0x1p53 + 2},
		{"just below a tie", []float64{0x1p53 + 2, 1, -tiny}, 0x1p53 + 2},
		{"rounding carries into the exponent", []float64{0x1p54 - 1*2, 1}, 0x1p54},
		{"square of the smallest float32", []float64{0x1p-298}, 0x1p-298},
		{"largest grain sum", []float64{0x1p263, 0x1p-298}, 0x1p263},
		{"largest", []float64{huge}, huge},
		{"largest and less than half an ulp", []float64{huge, 0x1p969}, huge},
		{"largest and half an ulp", []float64{huge, 0x1p970}, inf},
		{"too large", []float64{huge, huge, huge}, inf},
		{"too small", []float64{-huge, -huge}, -inf},
		{"back in range", []float64{huge, huge, -huge}, huge},
		{"infinity", []float64{inf, -5}, inf},
		{"negative infinity", []float64{-inf, huge}, -inf},
		{"both infinities", []float64{inf, -inf}, math.NaN()},
		{"not a number", []float64{inf, math.NaN()}, math.NaN()},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := exact.Round(sum(tc.in...))
			if math.Float64bits(got) != math.Float64bits(tc.want) && !(math.IsNaN(got) && math.IsNaN(tc.want)) {
				t.Errorf("got %x, want %x", got, tc.want)
			}
		})
	}
}

func TestMergeTagsAndFlags(t *testing.T) {
	inf := math.Inf(1)
	a, b := sum(1, 2), sum(3)
	if !exact.Finite(a) || exact.Tag(a) != 0 {
		t.Fatal("finite values left a mark")
	}
	exact.Add(a, inf, 9)
	exact.Add(a, inf, 7)
	exact.Add(a, math.NaN(), 8)
	exact.Add(b, inf, 5)
	if exact.Finite(a) || exact.Tag(a) != 7 || exact.Tag(b) != 5 {
		t.Fatalf("tags %d and %d, want 7 and 5", exact.Tag(a), exact.Tag(b))
	}
	ab, ba := slices.Clone(a), slices.Clone(b)
	exact.Merge(ab, b)
	exact.Merge(ba, a)
	if !slices.Equal(ab, ba) {
		t.Errorf("merge depends on order:\n%x\n%x", ab, ba)
	}
	if exact.Tag(ab) != 5 || !math.IsNaN(exact.Round(ab)) {
		t.Errorf("merged: tag %d, sum %v, want 5, NaN", exact.Tag(ab), exact.Round(ab))
	}
	exact.Add(ab, inf, 0) // no tag: the mark stays
	if exact.Tag(ab) != 5 {
		t.Errorf("an untagged infinity changed the tag to %d", exact.Tag(ab))
	}
}

// Values of the whole exponent range; runs of them cancel in part.
func random(r *rand.Rand, n int) []float64 {
	xs := make([]float64, n)
	for i := range xs {
		for {
			xs[i] = math.Float64frombits(r.Uint64())
			if r.IntN(2) == 0 { // in a narrow range, so that values meet
				xs[i] = math.Ldexp(r.NormFloat64(), r.IntN(140))
			}
			if !math.IsNaN(xs[i]) && !math.IsInf(xs[i], 0) {
				break
			}
		}
	}
	return xs
}

func TestOrderAndGroupingDoNotMatter(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		xs := random(r, 1+r.IntN(60))
		want := sum(xs...)
		if got := exact.Round(want); got != bigSum(xs) {
			t.Fatalf("sum of %x is %x, want %x", xs, got, bigSum(xs))
		}
		r.Shuffle(len(xs), func(i, j int) { xs[i], xs[j] = xs[j], xs[i] })
		parts := [][]uint64{sum(), sum(), sum()}
		for _, x := range xs {
			exact.Add(parts[r.IntN(3)], x, 0)
		}
		exact.Merge(parts[0], parts[1])
		exact.Merge(parts[2], parts[0])
		if !slices.Equal(parts[2], want) {
			t.Fatalf("another order of %x gave other bits", xs)
		}
	}
}

// All that the engine adds, at its extremes: 128 squares of float32 in a float64, many times.
func TestSumsOfSquares(t *testing.T) {
	small, large := float32(math.SmallestNonzeroFloat32), float32(math.MaxFloat32)
	grain := func(vs ...float32) (s float64) {
		for _, v := range vs {
			s += float64(v) * float64(v)
		}
		return s
	}
	xs := []float64{grain(small), grain(small, small, large), grain(slices.Repeat([]float32{large}, 128)...)}
	acc := sum(xs...)
	if got := exact.Round(acc); got != bigSum(xs) {
		t.Errorf("got %x, want %x", got, bigSum(xs))
	}
	for range 60 { // doubling is 2⁶⁰ additions
		exact.Merge(acc, slices.Clone(acc))
	}
	if got, want := exact.Round(acc), math.Ldexp(bigSum(xs), 60); got != want {
		t.Errorf("2⁶⁰ additions: got %x, want %x", got, want)
	}
}

func FuzzSum(f *testing.F) {
	seed := func(xs ...float64) {
		var b []byte
		for _, x := range xs {
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
		}
		f.Add(b)
	}
	seed(1, 0x1p-53)
	seed(math.MaxFloat64, 0x1p970)
	seed(-0x1p-1022, math.SmallestNonzeroFloat64, 1e10)
	seed(0x1p53, 1, -0x1p-1074)
	f.Fuzz(func(t *testing.T, b []byte) {
		var xs []float64
		for ; len(b) >= 8; b = b[8:] {
			x := math.Float64frombits(binary.LittleEndian.Uint64(b))
			if math.IsNaN(x) || math.IsInf(x, 0) {
				return
			}
			xs = append(xs, x)
		}
		got, want := exact.Round(sum(xs...)), bigSum(xs)
		if got != want {
			t.Errorf("sum of %x is %x, want %x", xs, got, want)
		}
	})
}

func TestNoAllocation(t *testing.T) {
	a, b := sum(1), sum(2)
	if n := testing.AllocsPerRun(100, func() {
		exact.Add(a, 3, 0)
		exact.Merge(a, b)
		exact.Round(a)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkAdd(b *testing.B) {
	acc := sum()
	x := 1.0
	for b.Loop() {
		exact.Add(acc, x, 0)
		x += 0.125
	}
}
