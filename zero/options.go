package zero

import (
	"errors"
	"fmt"

	"zeroshard/collectives"
	"zeroshard/device"
	"zeroshard/models"
	"zeroshard/shard"
)

// Options say how a plan is compiled. The zero value of each field but Leaves and Shape is a sensible default.
type Options struct {
	// Mode is what the plan is for: training steps, evaluation, logits. Bits: unchanged.
	Mode models.Mode
	// Leaves is M, the micro-batches of one step over all ranks. Bits: changed.
	Leaves int
	// EvalLeaves is the micro-batches of one evaluation pass of a program; 0 is 1. Bits: unchanged.
	EvalLeaves int
	// Shape is the shape of one leaf. Bits: changed.
	Shape models.Shape
	// Inference is for engines that do not train: neither gradients nor optimizer state rest anywhere, and a program has no training plan. Bits: unchanged.
	Inference bool
	// Texts is how many texts a program continues side by side, each of up to Shape.Seq tokens; 0 is 1. Bits: unchanged.
	Texts int
	// Precision is the dtypes of a step; the zero value is fp32. Bits: changed.
	Precision Precision
	// States names the optimizer's values per element (optim.Optimizer.States). Bits: changed.
	States []string
	// Prefetch is how many compute ops ahead of its use a flat is gathered: 0 gathers just before the use. Bits: unchanged.
	Prefetch int
	// Recompute is activation checkpointing: 0 saves all, 1 recomputes every unit's saved values in backward, n those of
	// every n-th unit. Bits: unchanged.
	Recompute int
	// Window is the number of leaves that a rank folds itself before it sends, a power of two; 0 is the largest that
	// adds no idle leaf. Only replicated gradients have windows above 1. Bits: unchanged.
	Window int
	// KeepLast leaves a flat gathered over one op that does not read it, so the last block is gathered once. Bits: unchanged.
	KeepLast bool
	// SubGroup is the elements of tiered state that the optimizer updates at a time; 0 is an eighth of the largest shard, but at
	// least 1 Mi. Bits: unchanged.
	SubGroup int
	// Needs is device memory that backends ask for. Bits: unchanged.
	Needs Needs
}

// Needs is device memory that backends ask for.
type Needs struct {
	Scratch   int64                                       // of the kernels: kernels.Net.Scratch
	Workspace func(v collectives.Verb, bytes int64) int64 // staging of the transport: collectives.Group.Workspace; nil is none
}

func (o *Options) withDefaults() Options {
	d := *o
	if d.Precision == (Precision{}) {
		d.Precision = FP32
	}
	if d.Inference {
		d.States = nil
	}
	return d
}

const minSubGroup = 1 << 20

// subGroup is SubGroup in whole grains.
func (c *compiler) subGroup() int {
	n := c.o.SubGroup
	if n == 0 {
		for i := range c.flats {
			n = max(n, c.flats[i].shardLen/8)
		}
		n = max(n, minSubGroup)
	}
	return max(n/shard.Grain, 1) * shard.Grain
}

// Validate reports all faults at once.
func (o Options) Validate() error {
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: "+format, append([]any{ErrOptions}, args...)...))
	}
	if o.Leaves < 1 {
		bad("%d micro-batches in a step: at least 1 is needed", o.Leaves)
	}
	if o.Shape.Batch < 1 || o.Shape.Seq < 1 {
		bad("a micro-batch of %d sequences of %d tokens: both must be at least 1", o.Shape.Batch, o.Shape.Seq)
	}
	if o.Texts < 0 {
		bad("%d texts side by side: it cannot be negative", o.Texts)
	}
	if o.Inference && o.Mode == models.Train {
		bad("an engine that does not train has no training plan")
	}
	if o.Prefetch < 0 {
		bad("prefetch %d: it cannot be negative", o.Prefetch)
	}
	if o.SubGroup < 0 {
		bad("a sub-group of %d elements: use 1 or more, or 0 for the default", o.SubGroup)
	}
	if o.Recompute < 0 {
		bad("recompute %d: use 0 (none), 1 (all) or n (every n-th unit)", o.Recompute)
	}
	errs = append(errs, o.withDefaults().Precision.Validate())
	return errors.Join(errs...)
}

// gradWindow is the window that the options allow for gradients that rest whole or sharded: sums of 16-bit gradients are kept
// in fp32 on the owner alone, so there a rank sends every leaf.
func (o *Options) gradWindow(sharded bool) int {
	if sharded || o.Mode != models.Train || o.Precision.Reduce != device.F32 {
		return 1
	}
	return o.Window
}
