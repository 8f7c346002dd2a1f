package gpt

import (
	"testing"

	"zeroshard/kernels/cpu"
	"zeroshard/models"
	"zeroshard/models/modeltest"
)

// Texts longer than a block of keys, on every path of the fast kernels. (TestContract does the same with short ones on the readable kernels.)
func TestDecode(t *testing.T) {
	for _, path := range cpu.Paths() {
		t.Run(path, func(t *testing.T) {
			k, err := cpu.NewPath(nil, path)
			if err != nil {
				t.Fatal(err)
			}
			cfg := change(func(c *Config) { c.Width, c.Inner, c.Positions = 12, 8, 150 })
			modeltest.Decode(t, modeltest.NewLeaf(k, build(cfg, logitsBudget), models.Shape{Batch: 2, Seq: 132}, cfg.Vocab))
		})
	}
}
