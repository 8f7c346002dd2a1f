package stagetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"zeroshard"
	"zeroshard/models"
	"zeroshard/models/gpt"
	"zeroshard/optim"
	"zeroshard/prng"
	"zeroshard/zero"
)

// cell is a choice of everything that may not change a bit.
type cell struct {
	Stage, Ranks, Replicas, Window, Prefetch, Recompute, Threads, Threshold int
	KeepLast                                                                bool
	Optim, Param                                                            string // tiers
	Ratio                                                                   float64
}

// plain is the cell that others must equal: one rank, nothing sharded, nothing clever.
var plain = cell{Ranks: 1, Replicas: 1, Threads: 1}

// String names what differs from plain.
func (c cell) String() string {
	s := fmt.Sprintf("stage %d, %d ranks", c.Stage, c.Ranks)
	for _, o := range []struct {
		name         string
		value, plain any
	}{
		{"replicas", max(c.Replicas, 1), 1}, {"window", c.Window, 0}, {"prefetch", c.Prefetch, 0}, {"recompute", c.Recompute, 0},
		{"threads", max(c.Threads, 1), 1}, {"threshold", c.Threshold, 0}, {"keep-last", c.KeepLast, false},
		{"optimizer on", c.Optim, ""}, {"parameters on", c.Param, ""}, {"ratio", c.Ratio, 0.0},
	} {
		if o.value != o.plain {
			s += fmt.Sprintf(", %s %v", o.name, o.value)
		}
	}
	return s
}

func (c cell) config(job zeroshard.Config) zeroshard.Config {
	job.Stage, job.Ranks, job.Replicas, job.Window = c.Stage, c.Ranks, c.Replicas, c.Window
	job.Prefetch, job.Recompute, job.Threads, job.PersistenceThreshold, job.KeepLast = c.Prefetch, c.Recompute, c.Threads, c.Threshold, c.KeepLast
	job.Offload = zeroshard.Offload{Optimizer: c.Optim, Param: c.Param, Dir: os.TempDir(), SubGroup: 1000, Ratio: c.Ratio}
	return job
}

// result is what a run leaves behind.
type result struct {
	hash   string
	losses []float64
	norms  []float64
	held   float64 // loss of an evaluation at the end
}

func (r result) equal(o result) bool {
	return r.hash == o.hash && fmt.Sprint(r.losses, r.norms, r.held) == fmt.Sprint(o.losses, o.norms, o.held)
}

func (r result) String() string {
	return fmt.Sprintf("%.12s… losses %v norms %v held %v", r.hash, r.losses, r.norms, r.held)
}

const steps = 3

// job is a preset with clipping on, small batches, and random tokens of which some do not count.
func job(t testing.TB, preset string, leaves, micro, seq int, dropout float32) zeroshard.Config {
	t.Helper()
	cfg, err := gpt.Preset(preset)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Dropout = dropout
	m, err := gpt.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return zeroshard.Config{Model: m, Optimizer: optim.DefaultAdamW(), GlobalBatch: leaves * micro, MicroBatch: micro, Seq: seq,
		EvalLeaves: 3, Clip: 0.5, Seed: 11}
}

// batch makes micro-batch leaf of a step: a pure function, as the sampler of train is. Leaves have different numbers of valid targets.
func batch(c zeroshard.Config, step, leaf int) zero.Batch {
	vocab := vocabulary(c.Model)
	k := prng.New(5).Sub(uint64(step)).Sub(uint64(leaf))
	n := c.MicroBatch * c.Seq
	b := zero.Batch{Tokens: make([]int32, n), Targets: make([]int32, n)}
	for i := range n {
		b.Tokens[i] = int32(k.Intn(uint64(2*i), vocab))
		b.Targets[i] = int32(k.Intn(uint64(2*i+1), vocab))
		if i > 0 && i%(3+leaf) == 0 {
			b.Targets[i] = -1
		}
	}
	return b
}

// vocabulary is the number of tokens that a model knows.
func vocabulary(m models.Model) int {
	switch m := m.(type) {
	case *gpt.Model:
		return m.Config().Vocab
	case interface{ vocabulary() int }:
		return m.vocabulary()
	}
	panic(fmt.Sprintf("the vocabulary of %T is not known", m))
}

func hyper(step int) optim.Hyper { return optim.Hyper{Step: step, LR: 1e-2 / float64(step)} }

// train runs a job and checks on the way what holds for every run: planned memory is used memory, predicted traffic is counted
// traffic, every rank is back at what rests.
func train(c zeroshard.Config, options ...zeroshard.Option) (r result, err error) {
	ctx := context.Background()
	cl, err := zeroshard.Local(ctx, c, options...)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, cl.Close()) }()
	for step := 1; step <= steps; step++ {
		st, err := cl.Step(ctx, func(leaf int) (zero.Batch, error) { return batch(c, step, leaf), nil }, hyper(step))
		if err != nil {
			return r, err
		}
		if st.Skipped != nil {
			return r, fmt.Errorf("step %d skipped: %+v", step, *st.Skipped)
		}
		r.losses, r.norms = append(r.losses, st.Loss), append(r.norms, st.Norm)
		for rank, sent := range cl.Wire() {
			if want := cl.Program().Train.Wire(rank); sent != want {
				return r, fmt.Errorf("rank %d sent %+v, the plan says %+v", rank, sent, want)
			}
		}
	}
	held, err := cl.Eval(ctx, func(leaf int) (zero.Batch, error) { return batch(c, 0, leaf), nil })
	if err != nil {
		return r, err
	}
	r.held = held.Mean()
	rest := cl.Program().Cost()
	for _, m := range cl.Memory() {
		if m.Planned != m.Used || fmt.Sprint(m.PlannedBy) != fmt.Sprint(m.UsedBy) {
			return r, fmt.Errorf("rank %d planned %d %v, used %d %v", m.Rank, m.Planned, m.PlannedBy, m.Used, m.UsedBy)
		}
		if resting := rest.ModelState + rest.Scratch + rest.Workspace; m.Live != resting {
			return r, fmt.Errorf("rank %d holds %d bytes between steps, %d rest", m.Rank, m.Live, resting)
		}
	}
	r.hash, err = cl.StateSHA256(ctx)
	return r, err
}
