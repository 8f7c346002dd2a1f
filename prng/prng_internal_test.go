package prng

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The known answers of the paper's reference code (Random123, kat_vectors, "philox4x32 10").
func TestPhiloxKnownAnswers(t *testing.T) {
	const f = 0xffffffff
	for _, tc := range []struct {
		name    string
		counter [4]uint32
		key     [2]uint32
		want    [4]uint32
	}{
		{"zeros", [4]uint32{}, [2]uint32{}, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{"ones", [4]uint32{f, f, f, f}, [2]uint32{f, f}, [4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{"digits of pi", [4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, [2]uint32{0xa4093822, 0x299f31d0},
			[4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := philox(tc.counter, tc.key[0], tc.key[1]); got != tc.want {
				t.Errorf("got %08x, want %08x", got, tc.want)
			}
		})
	}
}

// The library's logarithm and circle agree with package math, at the ends and at random.
func TestSeries(t *testing.T) {
	words := []uint32{0, 1, 2, 3, 1<<29 - 1, 1 << 29, 1<<29 + 1, 1 << 30, 1 << 31, 3 << 30, 7 << 29, math.MaxUint32 - 1, math.MaxUint32}
	r := rand.New(rand.NewPCG(1, 1))
	for range 100000 {
		words = append(words, r.Uint32()>>r.IntN(32))
	}
	for _, w := range words {
		want := math.Log((float64(w) + 1) / (1 << 32))
		if got := lnWord(w); math.Abs(got-want) > 1e-13*math.Abs(want) {
			t.Fatalf("lnWord(%d) = %v, want %v", w, got, want)
		}
		sin, cos := sinCosTurn(w)
		wantSin, wantCos := math.Sincos(2 * math.Pi * float64(w) / (1 << 32))
		if math.Abs(sin-wantSin) > 2e-13 || math.Abs(cos-wantCos) > 2e-13 {
			t.Fatalf("sinCosTurn(%d) = %v, %v, want %v, %v", w, sin, cos, wantSin, wantCos)
		}
	}
}
