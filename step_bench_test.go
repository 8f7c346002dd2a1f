package zeroshard_test

import (
	"fmt"
	"testing"

	"zeroshard"
	"zeroshard/models/gpt"
	"zeroshard/optim"
	"zeroshard/zero"
)

// BenchmarkStep trains on two ranks. In tiny, all that a step does beside arithmetic shows; gpt2, of two sequences of 256 tokens a rank, is
// nearly all arithmetic, and takes seconds a step.
func BenchmarkStep(b *testing.B) {
	for stage := range 4 {
		b.Run(fmt.Sprintf("tiny/stage%d", stage), func(b *testing.B) {
			cfg := preset(b, "tiny")
			cfg.Stage = stage
			benchStep(b, cfg)
		})
	}
	b.Run("gpt2/stage3", func(b *testing.B) {
		if testing.Short() {
			b.Skip("takes seconds a step")
		}
		cfg := preset(b, "gpt2")
		cfg.Stage, cfg.GlobalBatch, cfg.MicroBatch, cfg.Seq, cfg.EvalLeaves = 3, 4, 2, 256, 1
		benchStep(b, cfg)
	})
}

func benchStep(b *testing.B, cfg zeroshard.Config) {
	cfg.Prefetch = 1
	c, err := zeroshard.Local(ctx, cfg)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	n := cfg.MicroBatch * cfg.Seq
	data := zero.Batch{Tokens: make([]int32, n), Targets: make([]int32, n)}
	for i := range n {
		data.Tokens[i], data.Targets[i] = int32(i%256), int32((i+1)%256)
	}
	step := 0
	b.ReportAllocs()
	for b.Loop() {
		step++
		if _, err := c.Step(ctx, func(int) (zero.Batch, error) { return data, nil }, optim.Hyper{Step: step, LR: 1e-4}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(cfg.GlobalBatch*cfg.Seq*b.N)/b.Elapsed().Seconds(), "tokens/s")
	b.ReportMetric(float64(c.Memory()[0].Used), "peak-B/rank")
	b.ReportMetric(float64(c.Wire()[0].Sum()), "wire-B/step")
}

// BenchmarkPlan compiles what a large run would do; nothing is reserved.
func BenchmarkPlan(b *testing.B) {
	for _, name := range []string{"gpt2", "175b"} {
		b.Run(name, func(b *testing.B) {
			cfg, err := gpt.Preset(name)
			if err != nil {
				b.Fatal(err)
			}
			m, err := gpt.New(cfg)
			if err != nil {
				b.Fatal(err)
			}
			ops := 0
			for b.Loop() {
				p, err := zeroshard.Plan(zeroshard.Config{Model: m, Ranks: 64, Stage: 3, GlobalBatch: 256, MicroBatch: 1, Seq: 1024, Prefetch: 1})
				if err != nil {
					b.Fatal(err)
				}
				ops = len(p.Train.Ops)
			}
			b.ReportMetric(float64(ops), "ops")
		})
	}
}
