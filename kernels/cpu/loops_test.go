package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"zeroshard/device"
	"zeroshard/internal/exact"
	"zeroshard/kernels/internal/f32"
)

// eachPath runs a test on every path of the machine.
func eachPath(t *testing.T, test func(t *testing.T, p *path)) {
	for _, p := range paths() {
		t.Run(p.name, func(t *testing.T) { test(t, p) })
	}
}

func equal(a, b float32) bool {
	return math.Float32bits(a) == math.Float32bits(b) || a != a && b != b
}

// aligned is n elements, skip behind a cache line.
func aligned[T any](n, skip int) []T {
	x := make([]T, n+128)
	for uintptr(unsafe.Pointer(&x[0]))%64 != 0 {
		x = x[1:]
	}
	return x[skip:][:n:n]
}

// Casts that stream give what casts give, and write nothing behind it.
func TestCastsStream(t *testing.T) {
	eachPath(t, func(t *testing.T, p *path) {
		r := rand.New(rand.NewPCG(1, 2))
		for _, n := range []int{0, 1, 31, 32, 33, 64, 1000, 4096 + 7} {
			for _, skip := range []int{0, 1, 32} {
				for _, d := range []device.DType{device.BF16, device.F16} {
					wide, half := make([]float32, n), make([]uint16, n)
					for i := range wide {
						wide[i], half[i] = math.Float32frombits(r.Uint32()), uint16(r.Uint32())
					}
					gotWide, gotHalf := aligned[float32](n+1, skip), aligned[uint16](n+1, skip)
					p.widen(gotWide[:n], half, d, true)
					p.narrow(gotHalf[:n], wide, d, true)
					wantWide, wantHalf := make([]float32, n+1), make([]uint16, n+1)
					widen(wantWide[:n], half, d, false)
					narrow(wantHalf[:n], wide, d, false)
					for i := range wantWide {
						if !equal(gotWide[i], wantWide[i]) || gotHalf[i] != wantHalf[i] {
							t.Fatalf("%v, %d elements, %d past a cache line, element %d: %v, %#x, want %v, %#x", d, n, skip, i, gotWide[i], gotHalf[i], wantWide[i], wantHalf[i])
						}
					}
				}
			}
		}
	})
}

// Where exp meets its limits and beyond.
func TestExpAtItsLimits(t *testing.T) {
	var x []float32
	for _, v := range []float32{f32.ExpMin, f32.ExpMax, 89, 88.5, -87.5, -88, 0, 127, 128, 129, 1e10, math.MaxFloat32, 1e-40, float32(math.Inf(1))} {
		for _, v := range []float32{v, -v} {
			up, down := v, v
			for range 20 {
				x = append(x, up, down)
				up, down = math.Nextafter32(up, float32(math.Inf(1))), math.Nextafter32(down, float32(math.Inf(-1)))
			}
		}
	}
	x = append(x, float32(math.NaN()))
	eachPath(t, func(t *testing.T, p *path) {
		got := make([]float32, len(x))
		p.expSum(got, x, 0)
		for i, v := range x {
			if want := f32.Exp(v); !equal(got[i], want) {
				t.Errorf("exp(%v) is %v, want %v", v, got[i], want)
			}
		}
	})
}

// Sums by exponent are those of the long accumulator alone, for the largest, the smallest, and what is no number.
func TestGrainsAddExactly(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	draws := map[string]func(i int) float64{
		"one exponent, all bits": func(int) float64 { return math.Nextafter(2, 0) },
		"all exponents":          func(int) float64 { return math.Ldexp(1+r.Float64(), r.IntN(562)-298) },
		"beyond":                 func(int) float64 { return math.Ldexp(1+r.Float64(), r.IntN(2000)-1000) },
		"zeros":                  func(i int) float64 { return float64(i % 2) },
		"infinite":               func(i int) float64 { return [...]float64{1, math.Inf(1), 3}[i%3] },
		"not a number":           func(i int) float64 { return [...]float64{1, math.NaN(), 3}[i%3] },
		"denormal":               func(i int) float64 { return math.Float64frombits(uint64(i)) },
	}
	for name, draw := range draws {
		t.Run(name, func(t *testing.T) {
			var g grains
			var want [exact.Words]uint64
			for round := range 2 {
				for i := range g.sums {
					g.sums[i] = draw(i)
					exact.Add(want[:], g.sums[i], 7)
				}
				g.add(g.sums[:], 7)
				if g.acc != want {
					t.Fatalf("round %d: the sums differ", round)
				}
			}
			if g.bins != [len(g.bins)]uint64{} {
				t.Error("bins are not empty afterwards")
			}
		})
	}
}

func TestAddsStream(t *testing.T) {
	eachPath(t, func(t *testing.T, p *path) {
		for _, n := range []int{0, 1, 31, 32, 1000} {
			for _, skip := range []int{0, 1, 16} {
				got, want, a, b := aligned[float32](n+1, skip), make([]float32, n+1), make([]float32, n), make([]float32, n)
				for i := range a {
					a[i], b[i] = rand.Float32(), rand.Float32()
				}
				p.addStream(got[:n], a, b)
				add(want[:n], a, b)
				if !slices.Equal(got, want) {
					t.Errorf("%d elements, %d past a cache line: not the sum", n, skip)
				}
			}
		}
	})
}

func TestAddRows(t *testing.T) {
	eachPath(t, func(t *testing.T, p *path) {
		for _, n := range []int{0, 1, 31, 32, 100, 513} {
			for _, rows := range []int{0, 1, 7, 8, 9, 16, 25} {
				ld := n + 5
				x, got, want := make([]float32, rows*ld+n), make([]float32, n), make([]float32, n)
				for i := range x {
					x[i] = rand.Float32() - 0.5
				}
				p.addRows(got, x, ld, rows)
				addRows(want, x, ld, rows)
				if fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("%d rows of %d differ", rows, n)
				}
			}
		}
	})
}
