package train

import (
	"cmp"
	"math"
	"slices"
)

// pick draws one token: u in [0, 1) is a place in the cumulated probabilities of the candidates, best first. Ties go to the
// lower id. Logits must be finite.
func pick(logits []float32, s Sampling, u float64) int32 {
	if s.Temperature <= 0 {
		return best(logits, 1)[0]
	}
	ids := best(logits, s.TopK)
	weights, sum := make([]float64, len(ids)), 0.0
	for i, id := range ids {
		weights[i] = math.Exp(float64(logits[id]-logits[ids[0]]) / s.Temperature)
		sum += weights[i]
	}
	if s.TopP > 0 && s.TopP < 1 {
		weights, sum = nucleus(weights, sum, s.TopP)
	}
	for i, w := range weights {
		if u -= w / sum; u < 0 {
			return ids[i]
		}
	}
	return ids[0] // rounding left nothing over
}

// nucleus keeps the first weights whose share of the sum reaches p: at least one (Holtzman et al., arXiv 1904.09751).
func nucleus(weights []float64, sum, p float64) (kept []float64, rest float64) {
	for i, w := range weights {
		if rest += w; rest >= p*sum {
			return weights[:i+1], rest
		}
	}
	return weights, rest
}

// best lists the ids of the n highest logits, best first; n = 0: all.
func best(logits []float32, n int) []int32 {
	better := func(a, b int32) int {
		return cmp.Or(cmp.Compare(logits[b], logits[a]), cmp.Compare(a, b))
	}
	if n <= 0 || n >= len(logits) {
		ids := make([]int32, len(logits))
		for i := range ids {
			ids[i] = int32(i)
		}
		slices.SortFunc(ids, better)
		return ids
	}
	ids := make([]int32, 0, n+1)
	for i := range int32(len(logits)) {
		if len(ids) == n && better(i, ids[n-1]) > 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(ids, i, better)
		ids = slices.Insert(ids, at, i)
		ids = ids[:min(len(ids), n)]
	}
	return ids
}
