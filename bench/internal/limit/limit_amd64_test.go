package limit

import "testing"

// Each multiply-add of a chain adds 1/4 to each of its 8 lanes; lane 0 of the sum of all chains comes back.
func TestFMAAVX2Counts(t *testing.T) {
	if !vectors() {
		t.Skip("this CPU has no AVX2 and FMA")
	}
	for _, turns := range []int{0, 1, 7} {
		if got, want := fmaAVX2(turns, 0.5), float32(turns*Flops/16)/4; got != want {
			t.Errorf("%d turns sum to %v, want %v", turns, got, want)
		}
	}
}

// A turn of wide vectors has as many chains, of 16 lanes.
func TestFMAAVX512Counts(t *testing.T) {
	if !wideVectors() {
		t.Skip("this CPU has no AVX-512")
	}
	for _, turns := range []int{0, 1, 7} {
		if got, want := fmaAVX512(turns, 0.5), float32(turns*Flops/16)/4; got != want {
			t.Errorf("%d turns sum to %v, want %v", turns, got, want)
		}
	}
}

func BenchmarkFMA(b *testing.B) {
	for b.Loop() {
		FMA(1 << 16)
	}
	b.ReportMetric(Flops*float64(1<<16)*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GFLOP/s")
}
