package f32_test

import (
	"fmt"
	"math"
	"math/big"
	"math/rand"
	"testing"

	"zeroshard/kernels/internal/f32"
)

// ulps is the distance from got to the exact value want, in units of the last place of float32.
func ulps(got float32, want float64) float64 {
	_, e := math.Frexp(want)
	return math.Abs(float64(got)-want) / math.Ldexp(1, max(e, -125)-24)
}

func TestExpIsWithinOneUlp(t *testing.T) {
	worst, at := 0.0, float32(0)
	step := uint32(251)
	if testing.Short() {
		step = 4093
	}
	for b := uint32(0); b < 0x42b17218; b += step { // 0 … 88.7228
		for _, x := range []float32{math.Float32frombits(b), -math.Float32frombits(b)} {
			if x < f32.ExpMin {
				continue
			}
			if u := ulps(f32.Exp(x), math.Exp(float64(x))); u > worst {
				worst, at = u, x
			}
		}
	}
	t.Logf("worst %.3f ulp at %g", worst, at)
	if worst > 1 {
		t.Errorf("Exp(%g) is %.3f ulp off, promised 1", at, worst)
	}
}

// The limits are sharp: every argument beside them gives a normal, finite number close to the right one.
func TestExpLimits(t *testing.T) {
	inf := float32(math.Inf(1))
	for x := float32(f32.ExpMin); x < -87.33; x = math.Nextafter32(x, 0) {
		if y := f32.Exp(x); y < 0x1p-126 || ulps(y, math.Exp(float64(x))) > 1 {
			t.Fatalf("Exp(%g) = %g", x, y)
		}
	}
	for x := float32(f32.ExpMax); x > 88.71; x = math.Nextafter32(x, 0) {
		if y := f32.Exp(x); !(y < inf) || ulps(y, math.Exp(float64(x))) > 1 {
			t.Fatalf("Exp(%g) = %g", x, y)
		}
	}
	if x := math.Nextafter32(f32.ExpMin, -inf); math.Exp(float64(x)) >= 0x1p-126 {
		t.Errorf("e^%g is normal, but below ExpMin", x)
	}
	if x := math.Nextafter32(f32.ExpMax, inf); math.Exp(float64(x)) < math.MaxFloat32 {
		t.Errorf("e^%g is finite, but above ExpMax", x)
	}
	for _, c := range []struct{ x, want float32 }{{0, 1}, {float32(math.Copysign(0, -1)), 1}, {inf, inf}, {-inf, 0}, {-88, 0}, {89, inf}} {
		if y := f32.Exp(c.x); y != c.want {
			t.Errorf("Exp(%g) = %g, want %g", c.x, y, c.want)
		}
	}
	for _, b := range []uint32{0x7fc00000, 0x7fc00001, 0x7f800001, 0xffc12345} {
		if y := f32.Exp(math.Float32frombits(b)); y == y {
			t.Errorf("Exp(NaN %#x) = %g", b, y)
		}
	}
}

// trials is n, or a tenth in short mode.
func trials(n int) int {
	if testing.Short() {
		return n / 10
	}
	return n
}

func TestLog(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	for range trials(100000) {
		x := math.Ldexp(1+rng.Float64(), rng.Intn(300)-150)
		got, want := f32.Log(x), math.Log(x)
		if d := math.Abs(got - want); d > 2*math.Abs(math.Nextafter(want, math.Inf(1))-want)+1e-300 && d > 4e-16*math.Abs(want) {
			t.Fatalf("Log(%g) = %g, want %g", x, got, want)
		}
	}
	for _, x := range []float64{math.Inf(-1), -1, math.NaN(), 0} {
		if y := f32.Log(x); y == y {
			t.Errorf("Log(%g) = %g, want NaN", x, y)
		}
	}
	if y := f32.Log(math.Inf(1)); !math.IsInf(y, 1) {
		t.Errorf("Log(+Inf) = %g", y)
	}
	if y := f32.Log(1); y != 0 {
		t.Errorf("Log(1) = %g", y)
	}
}

// FMA against exact arithmetic, with operands chosen so that double rounding would show.
func TestFMA(t *testing.T) {
	rng := rand.New(rand.NewSource(2))
	pick := func() float32 {
		m := rng.Uint32() & 0x7fffff
		switch rng.Intn(4) {
		case 0:
			m &= 0x7ff000 // few bits: ties
		case 1:
			m |= 0x7ff
		}
		e := uint32(127 + rng.Intn(60) - 30)
		if rng.Intn(16) == 0 {
			e = uint32(rng.Intn(255))
		}
		return math.Float32frombits(rng.Uint32()&(1<<31) | e<<23 | m)
	}
	// (1+2⁻¹²)² lies half way between two float32; 2⁻⁸⁰ decides, and is lost on the way through float64.
	const a, tie = 1 + 0x1p-12, 1 + 0x1p-11
	for c, want := range map[float32]float32{0x1p-80: tie + 0x1p-23, 0: tie, -0x1p-80: tie} {
		if got := f32.FMA(a, a, c); got != want {
			t.Errorf("(1+2⁻¹²)² + %g = %x, want %x", c, got, want)
		}
	}
	for range trials(300000) {
		a, b, c := pick(), pick(), pick()
		if rng.Intn(2) == 0 { // a c near a half ulp of the product, or the other way round
			c = math.Float32frombits(math.Float32bits(float32(a*b))&0xff800000 + uint32(rng.Intn(60)-30)<<23)
		}
		if c != c || math.IsInf(float64(c), 0) {
			continue
		}
		exact := new(big.Float).SetPrec(1000).Mul(big.NewFloat(float64(a)), big.NewFloat(float64(b)))
		exact.Add(exact, big.NewFloat(float64(c)))
		want, _ := exact.Float32()
		got := f32.FMA(a, b, c)
		if got != want {
			t.Fatalf("FMA(%x, %x, %x) = %x, want %x", a, b, c, got, want)
		}
	}
	inf := float32(math.Inf(1))
	if y := f32.FMA(inf, 1, -inf); y == y {
		t.Errorf("Inf - Inf = %g", y)
	}
	if y := f32.FMA(inf, 0, 1); y == y {
		t.Errorf("Inf·0 = %g", y)
	}
	if y := f32.FMA(inf, 1, 1); y != inf {
		t.Errorf("Inf·1+1 = %g", y)
	}
	if y := f32.FMA(math.MaxFloat32, 2, 0); y != inf {
		t.Errorf("overflow gives %g", y)
	}
}

func TestHalfRoundTripsAndRounds(t *testing.T) {
	for h := range 1 << 16 {
		if v := f32.FromF16(uint16(h)); v == v && f32.ToF16(v) != uint16(h) {
			t.Fatalf("fp16 %#x → %g → %#x", h, v, f32.ToF16(v))
		} else if v != v && f32.FromF16(f32.ToF16(v)) == f32.FromF16(f32.ToF16(v)) {
			t.Fatalf("fp16 NaN %#x got lost", h)
		}
		if v := f32.FromBF16(uint16(h)); v == v && f32.ToBF16(v) != uint16(h) {
			t.Fatalf("bf16 %#x → %g → %#x", h, v, f32.ToBF16(v))
		} else if v != v && f32.FromBF16(f32.ToBF16(v)) == f32.FromBF16(f32.ToBF16(v)) {
			t.Fatalf("bf16 NaN %#x got lost", h)
		}
	}
	// Nearest, ties to even: between neighbours a < b, the rounding of x must be the nearer one.
	check := func(name string, to func(float32) uint16, from func(uint16) float32, inf uint16) {
		for h := uint16(0); h < inf; h++ {
			a, b := from(h), float64(from(h+1))
			if h+1 == inf { // where the next number would be
				b = 2*float64(a) - float64(from(h-1))
			}
			mid := float32((float64(a) + b) / 2)
			even := h + h&1
			for _, c := range []struct {
				x    float32
				want uint16
			}{{mid, even}, {math.Nextafter32(mid, a), h}, {math.Nextafter32(mid, float32(math.Inf(1))), h + 1}, {-mid, even | 0x8000}} {
				if got := to(c.x); got != c.want {
					t.Fatalf("%s(%g) = %#x, want %#x", name, c.x, got, c.want)
				}
			}
		}
	}
	check("ToF16", f32.ToF16, f32.FromF16, 0x7c00)
	check("ToBF16", f32.ToBF16, f32.FromBF16, 0x7f80)
	if f32.ToF16(float32(math.Inf(-1))) != 0xfc00 || f32.ToBF16(float32(math.Inf(-1))) != 0xff80 {
		t.Error("−Inf")
	}
}

func TestSumOrder(t *testing.T) {
	x := make([]float32, 77)
	for i := range x {
		x[i] = float32(math.Pow(-1.3, float64(i%23))) * float32(i+1)
	}
	var l [32]float32
	for i := range x {
		l[i%32] += x[i]
	}
	// The documented tree, written out.
	var tree func(lo, n int) float32
	tree = func(lo, n int) float32 {
		if n == 1 {
			return l[lo]
		}
		s := make([]float32, n/2)
		for i := range s {
			s[i] = l[lo+i] + l[lo+i+n/2]
		}
		copy(l[lo:], s)
		return tree(lo, n/2)
	}
	if got, want := f32.Sum(x), tree(0, 32); got != want {
		t.Errorf("Sum = %x, want %x", got, want)
	}
	if f32.Sum(nil) != 0 || f32.SumSquares(nil) != 0 || f32.Dot(nil, nil) != 0 {
		t.Error("empty sums are not 0")
	}
	if f32.Max(nil) != float32(math.Inf(-1)) || f32.Max([]float32{float32(math.NaN()), -3}) != -3 {
		t.Error("Max")
	}
}

func ExampleFlush() {
	fmt.Println(f32.Flush(1e-39), f32.Flush(-1e-39), f32.Flush(1e-37))
	// Output: 0 0 1e-37
}
