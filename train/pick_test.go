package train

import (
	"math"
	"slices"
	"testing"

	"zeroshard/prng"
)

func TestPick(t *testing.T) {
	half := float32(math.Log(0.5))
	var tenths []float32 // probabilities of 0.1, 0.2, 0.3, 0.4
	for _, p := range []float64{0.1, 0.2, 0.3, 0.4} {
		tenths = append(tenths, float32(math.Log(p)))
	}
	for _, c := range []struct {
		name   string
		logits []float32
		s      Sampling
		u      float64
		want   int32
	}{
		{"greedy", []float32{1, 5, 2}, Sampling{}, 0.99, 1},
		{"greedy tie", []float32{5, 1, 5}, Sampling{}, 0.99, 0},
		{"first half", []float32{half, half}, Sampling{Temperature: 1}, 0.49, 0},
		{"second half", []float32{half, half}, Sampling{Temperature: 1}, 0.51, 1},
		{"best first", []float32{0, 9}, Sampling{Temperature: 1}, 0, 1},
		{"the rest at the end", []float32{0, 9}, Sampling{Temperature: 1}, 0.99999, 0},
		{"top 1", []float32{0, 0.1}, Sampling{Temperature: 1, TopK: 1}, 0.99999, 1},
		{"top k over the vocabulary", []float32{0, 0.1}, Sampling{Temperature: 1, TopK: 9}, 0, 1},
		{"cold is greedy", []float32{0, 0.1}, Sampling{Temperature: 1e-4}, 0.999, 1},
		{"top 2 of a tie takes the lower ids", []float32{0, 0, 0}, Sampling{Temperature: 1, TopK: 2}, 0.99999, 1},
		{"nucleus of one", tenths, Sampling{Temperature: 1, TopP: 0.3}, 0.99999, 3},
		{"nucleus of two", tenths, Sampling{Temperature: 1, TopP: 0.41}, 0.99999, 2},
		{"nucleus of two, its first", tenths, Sampling{Temperature: 1, TopP: 0.41}, 0.57, 3},
		{"nucleus of two, its second", tenths, Sampling{Temperature: 1, TopP: 0.41}, 0.58, 2},
		{"nucleus of nothing is the best", tenths, Sampling{Temperature: 1, TopP: 1e-9}, 0.99999, 3},
		{"nucleus of all", tenths, Sampling{Temperature: 1, TopP: 1}, 0.99999, 0},
		{"nucleus of the top 2", tenths, Sampling{Temperature: 1, TopK: 2, TopP: 0.58}, 0.99999, 2},
		{"nucleus of the top 2, of which one is enough", tenths, Sampling{Temperature: 1, TopK: 2, TopP: 0.57}, 0.99999, 3},
		{"nucleus of a tie takes the lower id", []float32{0, 0}, Sampling{Temperature: 1, TopP: 0.5}, 0.99999, 0},
		{"temperature widens the nucleus", tenths, Sampling{Temperature: 100, TopP: 0.7}, 0.99999, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := pick(c.logits, c.s, c.u); got != c.want {
				t.Errorf("picked %d, want %d", got, c.want)
			}
		})
	}
}

// The best few are the first of all, sorted, ties included.
func TestBestAreTheFirstOfAll(t *testing.T) {
	key := prng.New(1)
	logits := make([]float32, 200)
	for i := range logits {
		logits[i] = float32(key.Intn(uint64(i), 20)) // many ties
	}
	all := best(logits, 0)
	if len(all) != len(logits) {
		t.Fatalf("%d of %d", len(all), len(logits))
	}
	for _, n := range []int{1, 2, 7, 40, 199, 200, 500} {
		if got := best(logits, n); !slices.Equal(got, all[:min(n, len(all))]) {
			t.Errorf("the best %d are %v, want %v", n, got, all[:min(n, len(all))])
		}
	}
}
