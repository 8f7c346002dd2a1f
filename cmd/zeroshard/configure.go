package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"zeroshard"
	"zeroshard/models/gpt"
	"zeroshard/optim"
	"zeroshard/zero"
)

func presetNames() string { return strings.Join(gpt.Presets(), ", ") }

// faults collects all that is wrong with a command line: one line each.
type faults struct{ lines []string }

func (f *faults) check(ok bool, format string, args ...any) {
	if !ok {
		f.lines = append(f.lines, fmt.Sprintf(format, args...))
	}
}

func (f *faults) err() error {
	if len(f.lines) == 0 {
		return nil
	}
	return &usageError{strings.Join(f.lines, "\n")}
}

// resolve fills in the defaults that depend on other flags, and judges what can be judged without looking at anything but the
// flags. What needs the whole (windows, meshes, memory) is judged where it is known, by zero and shard.
// known is the model's shape where --model does not decide it, else nil.
func (j *job) resolve(set *pflag.FlagSet, known *gpt.Config, f *faults) gpt.Config {
	var cfg gpt.Config
	var err error
	if known != nil {
		cfg = *known
	} else {
		cfg, err = gpt.Preset(j.model)
	}
	f.check(err == nil, "--model: %v", err)
	if err == nil {
		cfg.Dropout = float32(j.dropout)
		if j.seq == 0 {
			j.seq = cfg.Positions
		}
		f.check(j.seq >= 1 && j.seq <= cfg.Positions, "--seq %d: %s has %d positions, use 1 to %d", j.seq, j.model, cfg.Positions, cfg.Positions)
	}
	f.check(j.dropout >= 0 && j.dropout < 1, "--dropout %v: use at least 0 and less than 1", j.dropout)
	_, err = zero.Stage(j.stage)
	f.check(err == nil, "--stage %d: use 0 (nothing sharded), 1 (optimizer state), 2 (and gradients) or 3 (and parameters)", j.stage)
	f.check(j.clip >= 0 && j.clip < math.Inf(1), "--clip %v: use a norm above 0, or 0 for off", j.clip)
	f.check(j.prefetch >= 0, "--prefetch %d: use 0 or more", j.prefetch)
	f.check(j.persistence >= 0, "--persistence-threshold %d: use 0 or more", j.persistence)
	f.check(j.window >= 0 && j.window&(j.window-1) == 0, "--window %d: use a power of two, or 0 for the largest", j.window)
	f.check(j.precision == "fp32" || j.precision == "bf16", "--precision %q: use fp32 or bf16", j.precision)
	f.check(j.optimizer == "adamw" || j.optimizer == "sgd", "--optimizer %q: use adamw or sgd", j.optimizer)
	f.check(j.optimizer == "sgd" || !set.Changed("momentum"), "--momentum has no meaning for --optimizer %s", j.optimizer)
	j.tiers.judge(j.stage, f)
	j.judgeBatch(f)
	return cfg
}

// Bounds of what is taken at its word.
const (
	maxRanks    = 1 << 20
	maxThreads  = 4096
	maxSequence = 1 << 40 // sequences of a batch
)

// maxLeaves bounds the micro-batches of a rank, and with them the length of a plan.
const maxLeaves = 4096

func (j *job) judgeBatch(f *faults) {
	f.check(j.ranks >= 1 && j.ranks <= maxRanks, "--ranks %d: use 1 to %d", j.ranks, maxRanks)
	f.check(j.globalBatch >= 1 && j.globalBatch <= maxSequence, "--global-batch %d: use 1 to %d sequences", j.globalBatch, maxSequence)
	f.check(j.microBatch >= 1 && j.microBatch <= maxSequence, "--micro-batch %d: use 1 to %d sequences", j.microBatch, maxSequence)
	f.check(j.threads >= 0 && j.threads <= maxThreads, "--threads %d: use 1 to %d, or 0 for cores/ranks", j.threads, maxThreads)
	f.check(j.replicas >= 1, "--replicas %d: use 1 or more", j.replicas)
	if j.ranks < 1 || j.ranks > maxRanks || j.globalBatch < 1 || j.microBatch < 1 || j.globalBatch > maxSequence || j.microBatch > maxSequence || j.replicas < 1 {
		return
	}
	if rest := j.globalBatch % j.microBatch; rest != 0 {
		low, high := j.globalBatch-rest, j.globalBatch-rest+j.microBatch
		near := fmt.Sprintf("%d or %d", low, high)
		if low == 0 {
			near = fmt.Sprint(high)
		}
		f.check(false, "--global-batch %d does not divide by --micro-batch %d: the nearest that does is %s", j.globalBatch, j.microBatch, near)
		return
	}
	leaves := j.globalBatch / j.microBatch
	f.check(j.ranks <= leaves, "--ranks %d: a step has %d micro-batches, so at most %d ranks have work (or --global-batch %d)",
		j.ranks, leaves, leaves, j.ranks*j.microBatch)
	f.check(leaves/j.ranks <= maxLeaves, "--micro-batch %d makes %d micro-batches a rank, and a plan lists each: use at most %d, that is --micro-batch %d",
		j.microBatch, leaves/j.ranks, maxLeaves, (j.globalBatch/j.ranks+maxLeaves-1)/maxLeaves)
	if j.ranks%j.replicas != 0 {
		f.check(false, "--replicas %d does not divide --ranks %d: use %s", j.replicas, j.ranks, divisors(j.ranks))
	}
	row, err := zero.Stage(j.stage)
	f.check(err != nil || j.window <= 1 || !row.ShardsGradients() || j.ranks == j.replicas, "--window %d has no meaning at stage %d on %d ranks: sharded gradients are sent leaf by leaf", j.window, j.stage, j.ranks)
}

func divisors(n int) string {
	var out []string
	for d := 1; d <= n; d++ {
		if n%d == 0 {
			out = append(out, fmt.Sprint(d))
		}
	}
	return strings.Join(out, ", ")
}

// judge checks what learning alone decides.
func (l *learning) judge(j *job, set *pflag.FlagSet, f *faults) {
	f.take(l.optimizer(j))
	f.take(l.rates())
	f.check(l.stopAt >= 0, "--stop-at %d: use a step, or 0 for the last", l.stopAt)
	f.check(l.evalEvery >= 0, "--eval-every %d: use 0 or more steps", l.evalEvery)
	f.check(!slices.Contains(l.data, ""), "--data: a file name is empty")
	f.check(j.precision != "bf16", "--precision bf16: train computes in fp32 only as yet; plan takes bf16")
	for _, name := range []string{"beta1", "beta2", "eps"} {
		f.check(j.optimizer == "adamw" || !set.Changed(name), "--%s has no meaning for --optimizer %s", name, j.optimizer)
	}
}

func (o *output) judge(f *faults) {
	f.check(o.sample >= 0, "--sample %d: use 0 or more tokens", o.sample)
	o.audience.judge(f)
}

// config is the job for the engine.
func (j *job) config(m *gpt.Model, opt optim.Optimizer) zeroshard.Config {
	precision := zero.FP32
	if j.precision == "bf16" {
		precision = zero.BF16
	}
	return zeroshard.Config{
		Model: m, Optimizer: opt, Ranks: j.ranks, Stage: j.stage, Replicas: j.replicas, Threads: j.threads, GlobalBatch: j.globalBatch,
		MicroBatch: j.microBatch, Seq: j.seq, EvalLeaves: j.globalBatch / j.microBatch, Recompute: int(j.recompute), Prefetch: j.prefetch,
		Window: j.window, PersistenceThreshold: j.persistence, KeepLast: j.keepLast, Precision: precision, Clip: j.clip,
		Offload: j.tiers.config(), DeviceMemory: int64(j.deviceMemory),
	}
}
