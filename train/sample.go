package train

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"zeroshard/prng"
)

// Sampling says how a sample of text is drawn. Given the same logits it always draws the same text.
type Sampling struct {
	Tokens      int     // how many to draw
	Context     int     // how many of the last tokens the model sees: at most its sequence length
	Temperature float64 // logits are divided by it; 0 takes the best
	TopK        int     // only the best so many are drawn from; 0: all
	Seed        uint64
	Stop        <-chan struct{} // closed: draw no more
}

// Sample continues prompt (at least one token) and returns what it drew.
func Sample(ctx context.Context, w World, prompt []int32, s Sampling) ([]int32, error) {
	key := prng.New(s.Seed).Named("sample")
	text := slices.Clone(prompt)
	for i := range s.Tokens {
		if stopped(s.Stop) {
			break
		}
		logits, err := w.Logits(ctx, text[max(0, len(text)-s.Context):])
		if err != nil {
			return text[len(prompt):], fmt.Errorf("train: sample: %w", err)
		}
		text = append(text, pick(logits, s, float64(key.Uniform(uint64(i)))))
	}
	return text[len(prompt):], nil
}

// pick draws one token: u in [0, 1) is a place in the cumulated probabilities of the candidates, best first. Ties go to the
// lower id, and logits that are not numbers are never drawn while others are.
func pick(logits []float32, s Sampling, u float64) int32 {
	ids := make([]int32, len(logits))
	for i := range ids {
		ids[i] = int32(i)
	}
	slices.SortFunc(ids, func(a, b int32) int {
		return cmp.Or(cmp.Compare(logits[b], logits[a]), cmp.Compare(a, b))
	})
	if s.TopK > 0 {
		ids = ids[:min(s.TopK, len(ids))]
	}
	if s.Temperature <= 0 {
		return ids[0]
	}
	weights, sum := make([]float64, len(ids)), 0.0
	for i, id := range ids {
		w := math.Exp(float64(logits[id]-logits[ids[0]]) / s.Temperature)
		if !math.IsNaN(w) {
			weights[i] = w
			sum += w
		}
	}
	for i, w := range weights {
		if u -= w / sum; u < 0 {
			return ids[i]
		}
	}
	return ids[0] // rounding left nothing over, or no logit is a number
}
