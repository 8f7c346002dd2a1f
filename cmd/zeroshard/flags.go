package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// job is what train and plan share: it decides the plan.
type job struct {
	model string
	world
	batch
	moves
	tiers                   tiers
	precision, optimizer    string
	dropout, clip, momentum float64
	deviceMemory            size
}

// world is who takes part, and what is sharded over them.
type world struct{ ranks, stage, replicas, threads int }

// batch is what a step trains on.
type batch struct{ globalBatch, microBatch, seq int }

// moves is when data moves, and what is kept or computed again instead.
type moves struct {
	prefetch, window, persistence int
	keepLast                      bool
	recompute                     recompute
}

// learning is what decides the values.
type learning struct {
	data                             fileList
	steps, stopAt, warmup, evalEvery int
	schedule                         string
	lr, beta1, beta2, eps, decay     float64
	seed                             uint64
}

// output is what the run leaves behind, and how it is told.
type output struct {
	out, summary string
	quiet        bool
	sample       int
	audience     audience
	words        keptWords // of its steps
}

// Endings of a flag's help: whether the flag can change a bit of the trained state.
const (
	unchanged = " Bits: unchanged"
	changed   = " Bits: changed"
)

func (j *job) flags(f *pflag.FlagSet) {
	f.StringVar(&j.model, "model", "tiny", "model `PRESET`: "+presetNames()+"."+changed)
	f.IntVar(&j.ranks, "ranks", 2, "ranks (`N`): any number up to that of the micro-batches in a step."+unchanged)
	f.IntVar(&j.stage, "stage", 3, "ZeRO stage (`0-3`), what is sharded over the ranks: 0 nothing, 1 optimizer state, 2 and gradients, 3 and parameters."+unchanged)
	f.IntVar(&j.replicas, "replicas", 1, "hybrid sharding: `N` replicas of ranks/N shards each."+unchanged)
	f.IntVar(&j.threads, "threads", 0, "threads (`N`) of each rank; 0: cores/ranks, at least 1."+unchanged)
	f.IntVar(&j.globalBatch, "global-batch", 8, "sequences (`N`) in a step, over all ranks."+changed)
	f.IntVar(&j.microBatch, "micro-batch", 1, "sequences (`N`) that pass the model together."+changed)
	f.IntVar(&j.seq, "seq", 0, "tokens (`N`) of a sequence; 0: the preset's positions."+changed)
	f.IntVar(&j.prefetch, "prefetch", 1, "gather a flat parameter `N` units ahead of its use."+unchanged)
	f.Var(&j.recompute, "recompute", "activation checkpointing: none, all, or every `N`-th block."+unchanged)
	f.IntVar(&j.window, "window", 0, "micro-batches (`N`) that a rank folds itself before it sends at stages 0 and 1, a power of two; 0: the largest."+unchanged)
	f.IntVar(&j.persistence, "persistence-threshold", 0, "keep parameters of fewer than `N` elements whole on every rank."+unchanged)
	f.BoolVar(&j.keepLast, "keep-last", false, "keep a flat gathered over one operation that does not read it."+unchanged)
	f.StringVar(&j.precision, "precision", "fp32", "arithmetic: `fp32|bf16`. Train takes fp32 only as yet."+changed)
	f.StringVar(&j.optimizer, "optimizer", "adamw", "what updates the parameters: `adamw|sgd`."+changed)
	f.Float64Var(&j.momentum, "momentum", 0.9, "sgd: momentum (`NUMBER`); 0: none."+changed)
	f.Float64Var(&j.clip, "clip", 1, "scale gradients down to this global `NORM`; 0: off."+changed)
	f.Float64Var(&j.dropout, "dropout", 0, "probability (`P`) of dropout."+changed)
	j.tiers.flags(f)
	f.Var(&j.deviceMemory, "device-memory", "refuse what needs more than `BYTES` a rank (67108864 or 64MiB)."+unchanged)
}

func (l *learning) flags(f *pflag.FlagSet) {
	f.Var(&l.data, "data", "`FILES` to train on: text, or .bin of nanoGPT or llm.c; without, Newton's Opticks, which every Go installation has."+changed)
	f.IntVar(&l.steps, "steps", defaultSteps, "steps (`N`) in all, which the schedule follows."+changed)
	f.IntVar(&l.stopAt, "stop-at", 0, "leave after step `N`, on the schedule of all --steps; 0: at their end."+unchanged)
	f.Float64Var(&l.lr, "lr", 1e-3, "highest learning `RATE`."+changed)
	f.IntVar(&l.warmup, "warmup", 10, "steps (`N`) in which the rate rises to --lr."+changed)
	f.StringVar(&l.schedule, "schedule", "cosine", "the rate after the warm-up: `cosine|linear|constant`. The first two fall to 10 % at the end."+changed)
	f.Float64Var(&l.beta1, "beta1", 0.9, "adamw: decay (`RATE`) of the mean of gradients."+changed)
	f.Float64Var(&l.beta2, "beta2", 0.95, "adamw: decay (`RATE`) of the mean of their squares."+changed)
	f.Float64Var(&l.eps, "eps", 1e-8, "adamw: added to the root of that mean (`NUMBER`)."+changed)
	f.Float64Var(&l.decay, "weight-decay", 0.1, "weight decay (`RATE`), on matrices only."+changed)
	f.Uint64Var(&l.seed, "seed", 1337, "initial values, data order and dropout follow from this `NUMBER`."+changed)
	f.IntVar(&l.evalEvery, "eval-every", 100, "validation loss every `N` steps and at the end; 0: at the end."+unchanged)
}

func (o *output) flags(f *pflag.FlagSet) {
	f.IntVar(&o.sample, "sample", 200, "print `N` tokens that the trained model writes; 0: none."+unchanged)
	f.StringVar(&o.out, "out", "", "run folder (`DIR`), which must not hold a run yet; without, runs/<name>")
	f.StringVar(&o.summary, "summary", "", "write the run's figures as JSON to `FILE`")
	o.audience.flags(f)
	f.BoolVar(&o.quiet, "quiet", false, "print errors only")
}

// recompute is activation checkpointing as a flag: zeroshard.Config.Recompute.
type recompute int

func (r *recompute) Set(text string) error {
	switch text {
	case "none":
		*r = 0
	case "all":
		*r = 1
	default:
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return fmt.Errorf("want none, all, or a number N ≥ 1 for every N-th block")
		}
		*r = recompute(n)
	}
	return nil
}

func (r *recompute) String() string {
	switch *r {
	case 0:
		return "none"
	case 1:
		return "all"
	}
	return strconv.Itoa(int(*r))
}

func (r *recompute) Type() string { return "N" }

// fileList is file names with commas between them; a name with a comma in it stands in quotes. Unlike pflag's lists it is replaced
// when its flag is repeated: the last wins.
type fileList []string

func (l *fileList) Set(text string) error {
	names, err := csv.NewReader(strings.NewReader(text)).Read()
	if err != nil {
		return errors.New("want file names with commas between them")
	}
	*l = names
	return nil
}

// String reads back as the same names.
func (l *fileList) String() string {
	if len(*l) == 0 {
		return ""
	}
	var b strings.Builder
	w := csv.NewWriter(&b)
	_ = w.Write(*l) // into memory
	w.Flush()
	return strings.TrimSuffix(b.String(), "\n")
}

func (l *fileList) Type() string { return "FILES" }

// threadCount is --threads with its default.
func (w *world) threadCount() int {
	if w.threads > 0 {
		return w.threads
	}
	return max(1, runtime.GOMAXPROCS(0)/w.ranks)
}
