package zeroshard_test

import (
	"testing"
	"time"

	"zeroshard"
	"zeroshard/optim"
	"zeroshard/zero"
)

// BenchmarkOffload compares steps with state in a tier to steps without, in turns so that both meet the same machine: four micro-batches on each
// of two ranks, a model of 30 million parameters. xplain is the time by that of plain steps.
func BenchmarkOffload(b *testing.B) {
	for _, c := range []struct{ name, optim, param string }{
		{"optimizer-on-host", zero.HostTier, ""}, {"all-on-host", zero.HostTier, zero.HostTier},
		{"optimizer-in-files", zero.FileTier, ""}, {"all-in-files", zero.FileTier, zero.FileTier},
	} {
		b.Run(c.name, func(b *testing.B) {
			cfg := preset(b, "small")
			cfg.Ranks, cfg.Stage, cfg.GlobalBatch, cfg.MicroBatch, cfg.Seq, cfg.EvalLeaves, cfg.Prefetch = 2, 3, 8, 1, 256, 1, 1
			plain := newStepper(b, cfg)
			cfg.Offload = zeroshard.Offload{Optimizer: c.optim, Param: c.param, Dir: b.TempDir()}
			tiered := newStepper(b, cfg)
			plain.step(b)
			tiered.step(b)
			var took [2]time.Duration
			for b.Loop() {
				took[0] += plain.step(b)
				took[1] += tiered.step(b)
			}
			cost := tiered.cluster.Program().Cost()
			b.ReportMetric(took[1].Seconds()/took[0].Seconds(), "xplain")
			b.ReportMetric(took[1].Seconds()/float64(b.N), "s/step")
			b.ReportMetric(float64(cost.Host.Fetched+cost.Host.Evicted+cost.Disk.Fetched+cost.Disk.Evicted)/1e6, "MB-moved/rank")
		})
	}
}

// stepper trains on the same tokens again and again.
type stepper struct {
	cluster *zeroshard.Cluster
	data    zero.Batch
	steps   int
}

func newStepper(b *testing.B, cfg zeroshard.Config) *stepper {
	b.Helper()
	c, err := zeroshard.Local(ctx, cfg)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { c.Close() })
	n := cfg.MicroBatch * cfg.Seq
	s := &stepper{cluster: c, data: zero.Batch{Tokens: make([]int32, n), Targets: make([]int32, n)}}
	for i := range n {
		s.data.Tokens[i], s.data.Targets[i] = int32(i%256), int32((i+1)%256)
	}
	return s
}

func (s *stepper) step(b *testing.B) time.Duration {
	b.Helper()
	s.steps++
	start := time.Now()
	if _, err := s.cluster.Step(ctx, func(int) (zero.Batch, error) { return s.data, nil }, optim.Hyper{Step: s.steps, LR: 1e-4}); err != nil {
		b.Fatal(err)
	}
	return time.Since(start)
}
