package zero

import (
	"errors"
	"fmt"
	"strings"

	"zeroshard/device"
	"zeroshard/shard"
)

// Rest says where a kind of state rests between uses: sharded over a mesh axis ("" = a whole copy on every rank), in a
// tier ("" = device memory).
type Rest struct {
	Over shard.Axis
	Tier string
}

// Strategy is a row: where parameters, gradients and optimizer state rest.
type Strategy struct {
	Name               string
	Param, Grad, Optim Rest
	// Ratio is the share of the trainable elements whose optimizer state and gradients rest in their tier, above 0 and up to 1: flats in
	// the order of the layout up to that share, at least one. The others' rest on the device. 0 is 1.
	Ratio float64
}

// Stages are the ZeRO stages: DDP, then optimizer state, gradients and parameters sharded (arXiv 1910.02054: P_os, P_os+g,
// P_os+g+p).
var Stages = [...]Strategy{
	{Name: "stage0"},
	{Name: "stage1", Optim: Rest{Over: shard.Shards}},
	{Name: "stage2", Optim: Rest{Over: shard.Shards}, Grad: Rest{Over: shard.Shards}},
	{Name: "stage3", Optim: Rest{Over: shard.Shards}, Grad: Rest{Over: shard.Shards}, Param: Rest{Over: shard.Shards}},
}

// The tiers.
const (
	HostTier = "host" // host memory outside the device's arenas
	FileTier = "file" // files
)

// Offload is s with optimizer state (and gradients, where they are sharded) and parameters resting in tiers, "" for device
// memory: ZeRO-Offload and ZeRO-Infinity (arXiv 2101.06840, 2104.07857) as a column of the table.
func (s Strategy) Offload(optim, param string) Strategy {
	s.Optim.Tier, s.Param.Tier = optim, param
	if s.Grad.Over != shard.None {
		s.Grad.Tier = optim
	}
	return s
}

// Partly is s with a ratio: a part of the optimizer state stays on the device, as with DeepSpeed's offload_optimizer.ratio.
func (s Strategy) Partly(ratio float64) Strategy {
	s.Ratio = ratio
	return s
}

// ShardsGradients says that gradients rest sharded: then windows have one leaf.
func (s Strategy) ShardsGradients() bool { return s.Grad.Over != shard.None }

// offloads says by flat whether its optimizer state and gradients follow the row's tier.
func (s Strategy) offloads(l *shard.Layout) []bool {
	var total, sum float64
	numel := func(f int) float64 {
		if l.Flats[f].Class == shard.Frozen {
			return 0
		}
		return float64(l.Flats[f].Len)
	}
	for f := range l.Flats {
		total += numel(f)
	}
	out := make([]bool, len(l.Flats))
	for f := range out {
		first := sum == 0
		sum += numel(f)
		out[f] = s.Ratio == 0 || first || sum <= s.Ratio*total
	}
	return out
}

// Stage returns the strategy of a ZeRO stage, or an error that names the stages there are.
func Stage(n int) (Strategy, error) {
	if n < 0 || n >= len(Stages) {
		return Strategy{}, fmt.Errorf("%w: there is no stage %d: use 0 (nothing sharded), 1 (optimizer state), 2 (and gradients) or 3 (and parameters)", ErrStrategy, n)
	}
	return Stages[n], nil
}

// Tiers says what rests where, "" if all rests on the device.
func (s Strategy) Tiers() (text string) {
	for _, r := range []struct {
		what string
		rest Rest
	}{{"parameter", s.Param}, {"gradient", s.Grad}, {"optimizer", s.Optim}} {
		if r.rest.Tier != "" {
			text += fmt.Sprintf(" %s=%s", r.what, r.rest.Tier)
		}
	}
	if s.Ratio != 0 && s.Ratio != 1 {
		text += fmt.Sprintf(" ratio=%v", s.Ratio)
	}
	return strings.TrimPrefix(text, " ")
}

// Validate reports all faults of a strategy at once.
func (s Strategy) Validate() error {
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w %s: "+format, append([]any{ErrStrategy, s.Name}, args...)...))
	}
	for _, r := range []struct {
		what string
		rest Rest
	}{{"parameters", s.Param}, {"gradients", s.Grad}, {"optimizer state", s.Optim}} {
		if r.rest.Over != shard.None && r.rest.Over != shard.Shards {
			bad("%s cannot be sharded over axis %q, only over %q", r.what, r.rest.Over, shard.Shards)
		}
		switch {
		case r.rest.Tier != "" && r.rest.Tier != HostTier && r.rest.Tier != FileTier:
			bad("%s cannot rest in tier %q: use %q or %q", r.what, r.rest.Tier, HostTier, FileTier)
		case r.rest.Tier != "" && r.rest.Over == shard.None:
			bad("%s can rest in a tier only where the stage shards them", r.what)
		}
	}
	switch partly := s.Ratio != 0 && s.Ratio != 1; {
	case !(s.Ratio >= 0 && s.Ratio <= 1):
		bad("an offload ratio of %v: use a share above 0 and up to 1", s.Ratio)
	case partly && s.Optim.Tier == "":
		bad("an offload ratio of %v has no meaning where optimizer state rests on the device: offload it, or leave the ratio out", s.Ratio)
	case partly && s.Param.Over == "": // as DeepSpeed has it
		bad("an offload ratio of %v is for stage 3: lower stages offload all optimizer state or none", s.Ratio)
	}
	if s.Param.Over != "" && s.Grad.Over == "" {
		bad("sharded parameters need sharded gradients")
	}
	if s.Grad.Over != "" && s.Optim.Over == "" {
		bad("sharded gradients need sharded optimizer state")
	}
	return errors.Join(errs...)
}

// row returns the strategy that a flat follows. Kept flats keep whole values, so where the strategy shards parameters they follow
// the row above it; frozen ones have values only.
func (s Strategy) row(f *shard.Flat) Strategy {
	if f.Class == shard.Kept {
		s.Param = Rest{}
	}
	return s
}

// Precision is the dtypes of a training step; the casts follow from these three words.
type Precision struct {
	Compute device.DType // parameters as units read them, and activations
	Reduce  device.DType // gradients as they are sent and rest
	Master  device.DType // weights as the optimizer updates them
}

// FP32 and BF16 are the usual ones: 16 bytes of model state a parameter with AdamW (4+4+8, and 2+2+12).
var (
	FP32 = Precision{device.F32, device.F32, device.F32}
	BF16 = Precision{device.BF16, device.BF16, device.F32}
)

func (p Precision) String() string {
	return fmt.Sprintf("compute=%v reduce=%v master=%v", p.Compute, p.Reduce, p.Master)
}

// Validate reports what cannot be planned.
func (p Precision) Validate() error {
	ok := func(d device.DType) bool { return d == device.F32 || d == device.BF16 || d == device.F16 }
	if !ok(p.Compute) || !ok(p.Reduce) || p.Master != device.F32 {
		return fmt.Errorf("%w: precision %v: compute and reduce are fp32, bf16 or fp16, master is fp32", ErrOptions, p)
	}
	if (p.Compute == device.F32) != (p.Reduce == device.F32) {
		return fmt.Errorf("%w: precision %v: compute and reduce must both be fp32 or both be 16-bit", ErrOptions, p)
	}
	return nil
}
