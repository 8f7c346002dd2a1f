package prng_test

import (
	"fmt"
	"math"
	"testing"

	"zeroshard/prng"
)

// Values that must never change: runs, checkpoints and published losses depend on them.
func TestGolden(t *testing.T) {
	k := prng.New(1337)
	got := fmt.Sprintf("%x\n%x\n%x\n%x\n%x\n%x\n%x\n%d %d %d\n",
		k, prng.New(0), k.Sub(1), k.Named(""), k.Named("h.0.attn.c_attn.weight"),
		[]uint64{k.Uint64(0), k.Uint64(1), k.Uint64(1 << 40)},
		[]float32{k.Uniform(0), k.Uniform(1), k.Uniform(4), k.Normal(0), k.Normal(1), k.Normal(2), k.Normal(3), k.Normal(4)},
		k.Intn(0, 1000), k.Intn(1, 1000), k.Intn(2, 1000))
	const want = `{e94bd21859b33cd 6b7613dbdbf08550}
{fd5bc81ecf3d0fe0 b9cc93dd82fd5812}
{35e77afbfb5d293 54e674109deabd9d}
{5e3f8acd06e71957 4c968034d524bfcf}
{3f746616a5400d60 ec54282810aa5e71}
[948d3605ce445100 d12343b3b5fbac97 2859be8a0616263f]
[0x1.9c88a2p-01 0x1.291a6cp-01 0x1.1a7d08p-02 -0x1.269d52p-01 -0x1.4548p-02 0x1.597054p-02 -0x1.821ea4p-01 0x1.8cb9c2p-03]
580 816 769
`
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

func TestKeysDiffer(t *testing.T) {
	seen := map[prng.Key]string{}
	add := func(k prng.Key, name string) {
		t.Helper()
		if other, ok := seen[k]; ok {
			t.Errorf("%s and %s are the same key", name, other)
		}
		seen[k] = name
	}
	root := prng.New(1)
	add(root, "root")
	for i := range uint64(1000) {
		add(root.Sub(i), fmt.Sprint("sub ", i))
		add(root.Sub(3).Sub(i), fmt.Sprint("sub 3, ", i))
		add(prng.New(i+2), fmt.Sprint("seed ", i+2))
		add(root.Named(fmt.Sprint(i)), fmt.Sprint("name ", i))
		add(prng.Key{Hi: root.Uint64(2*i + 1), Lo: root.Uint64(2 * i)}, fmt.Sprint("numbers ", i))
	}
	for _, name := range []string{"", "a", "a\x00", "12345678", "12345678\x00", "1234567", "abcdefgh12345678", "12345678abcdefgh"} {
		add(root.Named(name), fmt.Sprintf("name %q", name))
	}
}

// A slice of a stream is the same numbers wherever it starts: what lets each rank make its own part.
func TestFillEqualsScalar(t *testing.T) {
	k := prng.New(7).Sub(9)
	for _, lo := range []uint64{0, 1, 2, 3, 4, 5, 1<<34 - 2, math.MaxUint64 - 40} {
		for n := range 12 {
			uniform, normal := make([]float32, n), make([]float32, n)
			k.FillUniform(uniform, lo)
			k.FillNormal(normal, lo)
			for j := range n {
				i := lo + uint64(j)
				if uniform[j] != k.Uniform(i) || normal[j] != k.Normal(i) {
					t.Fatalf("from %d, element %d: filled %v, %v, want %v, %v", lo, j, uniform[j], normal[j], k.Uniform(i), k.Normal(i))
				}
			}
		}
	}
}

// Moments of a fixed sample lie within five standard errors of the distribution's.
func TestMoments(t *testing.T) {
	const n = 1 << 20
	k := prng.New(42)
	x := make([]float32, n)
	for _, tc := range []struct {
		name string
		fill func([]float32, uint64)
		want [4]float64 // E[x], E[x²], E[x³], E[x⁴]
		sdev [4]float64 // of x, x², x³, x⁴
	}{
		{"uniform", k.FillUniform, [4]float64{1. / 2, 1. / 3, 1. / 4, 1. / 5}, [4]float64{0.29, 0.30, 0.29, 0.27}},
		{"normal", k.Sub(1).FillNormal, [4]float64{0, 1, 0, 3}, [4]float64{1, 1.42, 3.88, 9.8}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.fill(x, 0)
			var m [4]float64
			lag := 0.
			for i, v := range x {
				p := 1.
				for j := range m {
					p *= float64(v)
					m[j] += p / n
				}
				lag += (float64(v) - tc.want[0]) * (float64(x[(i+1)%n]) - tc.want[0]) / n
			}
			for j := range m {
				if math.Abs(m[j]-tc.want[j]) > 5*tc.sdev[j]/math.Sqrt(n) {
					t.Errorf("moment %d is %.5f, want %.5f", j+1, m[j], tc.want[j])
				}
			}
			if variance := tc.want[1] - tc.want[0]*tc.want[0]; math.Abs(lag) > 5*variance/math.Sqrt(n) {
				t.Errorf("neighbours correlate: %.5f", lag/variance)
			}
		})
	}
}

func TestRanges(t *testing.T) {
	k := prng.New(3)
	counts := make([]int, 7)
	for i := range uint64(70000) {
		if u := k.Uniform(i); u < 0 || u >= 1 {
			t.Fatalf("Uniform(%d) = %v", i, u)
		}
		if v := k.Normal(i); !(math.Abs(float64(v)) < 6.67) {
			t.Fatalf("Normal(%d) = %v", i, v)
		}
		counts[k.Intn(i, len(counts))]++
	}
	for v, n := range counts {
		if math.Abs(float64(n)-10000) > 5*math.Sqrt(10000) {
			t.Errorf("Intn gave %d %d times of 70000", v, n)
		}
	}
	if v := k.Intn(5, math.MaxInt); v < 0 {
		t.Errorf("Intn of all ints is %d", v)
	}
}

func ExampleKey() {
	weights := prng.New(1337).Named("h.0.mlp.c_fc.weight")
	whole, slice := make([]float32, 6), make([]float32, 2)
	weights.FillNormal(whole, 0)
	weights.FillNormal(slice, 3) // what another rank owns
	fmt.Println(whole[3] == slice[0], whole[4] == slice[1])
	// Output: true true
}

func BenchmarkFillNormal(b *testing.B) {
	dst := make([]float32, 4096)
	b.SetBytes(int64(4 * len(dst)))
	for b.Loop() {
		prng.New(1).FillNormal(dst, 0)
	}
}

func BenchmarkFillUniform(b *testing.B) {
	dst := make([]float32, 4096)
	b.SetBytes(int64(4 * len(dst)))
	for b.Loop() {
		prng.New(1).FillUniform(dst, 0)
	}
}
