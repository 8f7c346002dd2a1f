package kerneltest

import (
	"math/rand/v2"
	"testing"

	"zeroshard/kernels"
)

// Random is RunAll with every kernel at shapes drawn from seed, rounds times. Sizes are often odd, and often one off a multiple of what
// vectors and tiles take.
func Random(t *testing.T, newKernels map[string]func(kernels.Pool) Kernels, want Kernels, seed uint64, rounds int) {
	var backends []backend
	for name, f := range newKernels {
		backends = append(backends, backend{name + ", 1 thread", f(nil), false}, backend{name + ", 2 threads", f(pool(2)), true})
	}
	for _, c := range randomTests(sizes{rand.New(rand.NewPCG(seed, 0))}, rounds) {
		for _, fault := range c.faults(backends, want) {
			t.Errorf("%s: %s", c.name, fault)
		}
	}
}

// sizes draws them.
type sizes struct{ *rand.Rand }

// upTo is at least 1 and at most n.
func (r sizes) upTo(n int) int {
	if r.IntN(2) == 0 {
		return 1 + r.IntN(n)
	}
	// About a multiple of a power of two.
	unit := 4 << r.IntN(5)
	return min(max(unit*(1+r.IntN(max(n/unit, 1)))+r.IntN(3)-1, 1), n)
}

func randomTests(r sizes, rounds int) (tests list) {
	for range rounds {
		tests.product([3]int{r.upTo(90), r.upTo(150), r.upTo(70)}, r.IntN(16))
		tests.product([3]int{r.upTo(20), r.upTo(70), r.upTo(600)}, r.IntN(16))
		tests.biasGrad([2]int{r.upTo(60), r.upTo(200)})
		tests.embedding([3]int{r.upTo(3), r.upTo(9), r.upTo(140)})
		tests.norm([2]int{r.upTo(9), r.upTo(300)})
		tests.attend([4]int{r.upTo(2), r.upTo(150), r.upTo(3), r.upTo(40)})
		seq := r.upTo(40)
		tests.continued([5]int{r.upTo(3), seq, seq + r.upTo(160), r.upTo(3), r.upTo(40)})
		tests.maps(r.upTo(700))
		tests.vector(r.upTo(700))
		tests.casts(r.upTo(700))
		tests.entropy([2]int{r.upTo(9), r.upTo(300)})
	}
	return tests
}
