package train

import (
	"math"
	"testing"
)

func TestPick(t *testing.T) {
	nan := float32(math.NaN())
	half := float32(math.Log(0.5))
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
		{"NaN is not drawn", []float32{nan, 1, nan}, Sampling{Temperature: 1}, 0.999, 1},
		{"only NaN", []float32{nan, nan}, Sampling{Temperature: 1}, 0.5, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := pick(c.logits, c.s, c.u); got != c.want {
				t.Errorf("picked %d, want %d", got, c.want)
			}
		})
	}
}
