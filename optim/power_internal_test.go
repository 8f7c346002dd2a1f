package optim

import (
	"math"
	"math/big"
	"testing"
)

// power against exact rationals: each product rounds once, and the error of a factor counts as often as it is a factor.
func TestPower(t *testing.T) {
	for _, b := range []float64{0, 0.5, 0.9, 0.95, 0.99, 0.999, 0.9999, 1 - 0x1p-30} {
		for _, n := range []int{0, 1, 2, 3, 7, 10, 31, 32, 33, 100, 1000, 4097} {
			exact := new(big.Float).SetPrec(4000).SetInt64(1)
			for range n {
				exact.Mul(exact, big.NewFloat(b))
			}
			got := power(b, n)
			off, _ := new(big.Float).Sub(exact, big.NewFloat(got)).Float64()
			want, _ := exact.Float64()
			if bound := want*float64(n)*0x1p-53 + math.SmallestNonzeroFloat64; math.Abs(off) > bound {
				t.Errorf("power(%v, %d) = %v, off by %v, more than %v", b, n, got, off, bound)
			}
			// What AdamW uses, rounded to fp32, is the exact value's neighbour at most.
			correction, exactly := float32(1-got), new(big.Float).Sub(big.NewFloat(1), exact)
			f, _ := exactly.Float32()
			if correction != f && correction != math.Nextafter32(f, 0) && correction != math.Nextafter32(f, 2) {
				t.Errorf("1−power(%v, %d) is %v in fp32, exactly %v", b, n, correction, f)
			}
		}
	}
	if b := 0.9; power(b, 3) != float64(b*b)*b {
		t.Error("three factors are not three products")
	}
}
