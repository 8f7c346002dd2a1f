package bench

import (
	"errors"
	"testing"
	"time"

	"zeroshard/collectives"
)

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		v    []float64
		want float64
	}{{[]float64{3}, 3}, {[]float64{9, 1}, 5}, {[]float64{5, 100, 1}, 5}, {[]float64{4, 1, 3, 2}, 2.5}} {
		if got := median(c.v); got != c.want {
			t.Errorf("median of %v is %v, want %v", c.v, got, c.want)
		}
	}
}

func TestContestTakesTurns(t *testing.T) {
	runs := [2]int{}
	nap := func(i int) work {
		return func() error { runs[i]++; time.Sleep(2 * least); return nil }
	}
	seconds, err := contest(time.Nanosecond, nap(0), nap(1))
	if err != nil {
		t.Fatal(err)
	}
	// Each: a run to touch memory, one to calibrate, and one in each round.
	if want := 2 + minRounds; runs != [2]int{want, want} {
		t.Errorf("%v runs, want %d each", runs, want)
	}
	for i, s := range seconds {
		if s < (2 * least).Seconds() {
			t.Errorf("contender %d takes %v s, it sleeps longer", i, s)
		}
	}
}

func TestContestStopsAtAnError(t *testing.T) {
	broken := errors.New("broken")
	for _, failing := range []int{1, 2, 4} {
		n := 0
		_, err := contest(time.Nanosecond, func() error { time.Sleep(least); return nil }, func() error {
			if n++; n == failing {
				return broken
			}
			time.Sleep(least)
			return nil
		})
		if !errors.Is(err, broken) || n != failing {
			t.Errorf("failing at run %d: %v after %d runs", failing, err, n)
		}
	}
}

func TestMoved(t *testing.T) {
	for _, c := range []struct {
		m    meeting
		want float64
	}{
		{meeting{collectives.AllGather, 2, 1 << 20}, 1 << 21},                       // each of two reads and writes half
		{meeting{collectives.ReduceScatter, 2, 1 << 20}, 3 << 20},                   // two parts read, one written, of each half
		{meeting{collectives.AllGather, 4, 1 << 20}, 2 * 3 * (1 << 20)},             // each of four misses three quarters
		{meeting{collectives.ReduceScatter, 4, 1 << 20}, (4 + 1) << 20},             // four parts read, one written
		{meeting{collectives.ReduceScatter, 1, 1 << 20}, (1 + 1) * 1e0 * (1 << 20)}, // a copy
	} {
		if got := c.m.moved(); got != c.want {
			t.Errorf("%v %s: %v bytes, want %v", c.m.verb, c.m.shape(), got, c.want)
		}
	}
}

func TestCut(t *testing.T) {
	for _, n := range []int{0, 1, 1023, 1024, 1025, 5000} {
		at := 0
		for i := range 3 {
			lo, hi := cut(n, i, 3, 1024)
			if lo != at || hi < lo {
				t.Errorf("part %d of %d: [%d,%d), want it to begin at %d", i, n, lo, hi, at)
			}
			at = hi
		}
		if at != n {
			t.Errorf("parts of %d end at %d", n, at)
		}
	}
}
