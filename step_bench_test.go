package zeroshard_test

import (
	"fmt"
	"testing"

	"zeroshard"
	"zeroshard/models/gpt"
	"zeroshard/optim"
	"zeroshard/zero"
)

// BenchmarkStep trains tiny on two ranks: all that a step does beside arithmetic shows here, where there is little of that.
func BenchmarkStep(b *testing.B) {
	for stage := range 4 {
		b.Run(fmt.Sprintf("tiny/stage%d", stage), func(b *testing.B) {
			cfg := preset(b, "tiny")
			cfg.Stage, cfg.Prefetch = stage, 1
			c, err := zeroshard.Local(ctx, cfg)
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			data := zero.Batch{Tokens: make([]int32, cfg.Seq), Targets: make([]int32, cfg.Seq)}
			for i := range data.Tokens {
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
			tokens := cfg.GlobalBatch * cfg.Seq
			b.ReportMetric(float64(tokens*b.N)/b.Elapsed().Seconds(), "tokens/s")
			b.ReportMetric(float64(c.Memory()[0].Used), "peak-B/rank")
			b.ReportMetric(float64(c.Wire()[0].Sum()), "wire-B/step")
		})
	}
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
