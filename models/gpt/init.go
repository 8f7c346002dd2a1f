package gpt

import (
	"math"
	"strings"

	"zeroshard/prng"
	"zeroshard/shard"
)

// std is the standard deviation of initial matrices.
const std = 0.02

// Init writes initial values as GPT-2's: matrices normal with deviation 0.02, the two that write to the residual stream
// 0.02/√(2·layers), biases 0, norm weights 1. Element i of a parameter is the i-th normal number of key.Named(its name).
func (m *Model) Init(key prng.Key, p shard.Param, lo int, dst []float32) {
	switch {
	case strings.HasSuffix(p.Name, ".bias"):
		clear(dst)
	case len(p.Shape) == 1:
		for i := range dst {
			dst[i] = 1
		}
	default:
		scale := float32(std)
		if strings.HasSuffix(p.Name, ".c_proj.weight") {
			scale = float32(std / math.Sqrt(float64(2*m.cfg.Layers)))
		}
		key.Named(p.Name).FillNormal(dst, uint64(lo))
		for i := range dst {
			dst[i] *= scale
		}
	}
}
