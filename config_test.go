package zeroshard_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"zeroshard"
	"zeroshard/device"
	"zeroshard/models"
	"zeroshard/models/gpt"
	"zeroshard/optim"
	"zeroshard/shard"
	"zeroshard/zero"
)

// fault is one way to break a good config.
type fault struct {
	name     string
	spoil    func(*zeroshard.Config)
	sentinel error
	text     string
}

var faults = []fault{
	{"no model", func(c *zeroshard.Config) { c.Model = nil }, zero.ErrOptions, "zero: options: no model"},
	{"no ranks", func(c *zeroshard.Config) { c.Ranks = 0 }, zero.ErrOptions, "zero: options: 0 ranks: at least 1 is needed"},
	{"negative ranks", func(c *zeroshard.Config) { c.Ranks = -2 }, zero.ErrOptions, "zero: options: -2 ranks: at least 1 is needed"},
	{"stage above", func(c *zeroshard.Config) { c.Stage = 4 }, zero.ErrStrategy,
		"zero: strategy: there is no stage 4: use 0 (nothing sharded), 1 (optimizer state), 2 (and gradients) or 3 (and parameters)"},
	{"stage below", func(c *zeroshard.Config) { c.Stage = -1 }, zero.ErrStrategy,
		"zero: strategy: there is no stage -1: use 0 (nothing sharded), 1 (optimizer state), 2 (and gradients) or 3 (and parameters)"},
	{"no batch", func(c *zeroshard.Config) { c.GlobalBatch = 0 }, zero.ErrOptions,
		"zero: options: global batch 0, micro-batch 1, sequence 8: all must be at least 1"},
	{"no micro-batch", func(c *zeroshard.Config) { c.MicroBatch = 0 }, zero.ErrOptions,
		"zero: options: global batch 8, micro-batch 0, sequence 8: all must be at least 1"},
	{"no sequence", func(c *zeroshard.Config) { c.Seq = -1 }, zero.ErrOptions,
		"zero: options: global batch 8, micro-batch 1, sequence -1: all must be at least 1"},
	{"batch does not divide", func(c *zeroshard.Config) { c.MicroBatch = 3 }, zero.ErrOptions,
		"zero: options: a global batch of 8 sequences does not divide into micro-batches of 3"},
	{"micro-batch above the batch", func(c *zeroshard.Config) { c.MicroBatch = 16 }, zero.ErrOptions,
		"zero: options: a global batch of 8 sequences does not divide into micro-batches of 16"},
	{"ranks do not divide", func(c *zeroshard.Config) { c.Ranks, c.Replicas = 6, 4 }, zero.ErrOptions, "zero: options: 6 ranks do not divide into 4 replicas"},
	{"replicas", func(c *zeroshard.Config) { c.Replicas = -1 }, zero.ErrOptions, "zero: options: replicas -1: it cannot be negative"},
	{"threads", func(c *zeroshard.Config) { c.Threads = -1 }, zero.ErrOptions, "zero: options: threads -1: it cannot be negative"},
	{"evaluation leaves", func(c *zeroshard.Config) { c.EvalLeaves = -1 }, zero.ErrOptions, "zero: options: evaluation leaves -1: it cannot be negative"},
	{"texts", func(c *zeroshard.Config) { c.Texts = -1 }, zero.ErrOptions, "zero: options: texts -1: it cannot be negative"},
	{"recompute", func(c *zeroshard.Config) { c.Recompute = -1 }, zero.ErrOptions, "zero: options: recompute -1: it cannot be negative"},
	{"prefetch", func(c *zeroshard.Config) { c.Prefetch = -1 }, zero.ErrOptions, "zero: options: prefetch -1: it cannot be negative"},
	{"window", func(c *zeroshard.Config) { c.Window = -1 }, zero.ErrOptions, "zero: options: window -1: it cannot be negative"},
	{"persistence threshold", func(c *zeroshard.Config) { c.PersistenceThreshold = -1 }, zero.ErrOptions,
		"zero: options: persistence threshold -1: it cannot be negative"},
	{"device memory", func(c *zeroshard.Config) { c.DeviceMemory = math.MinInt64 }, zero.ErrOptions,
		"zero: options: device memory -9223372036854775808: it cannot be negative"},
	{"clip below", func(c *zeroshard.Config) { c.Clip = -1 }, zero.ErrOptions, "zero: options: clip -1: use a norm above 0, or 0 for off"},
	{"clip NaN", func(c *zeroshard.Config) { c.Clip = math.NaN() }, zero.ErrOptions, "zero: options: clip NaN: use a norm above 0, or 0 for off"},
	{"clip infinite", func(c *zeroshard.Config) { c.Clip = math.Inf(1) }, zero.ErrOptions, "zero: options: clip +Inf: use a norm above 0, or 0 for off"},
	{"precision", func(c *zeroshard.Config) {
		c.Precision = zero.Precision{Compute: device.F32, Reduce: device.BF16, Master: device.F32}
	}, zero.ErrOptions,
		"zero: options: precision compute=fp32 reduce=bf16 master=fp32: compute and reduce must both be fp32 or both be 16-bit"},
	{"optimizer", func(c *zeroshard.Config) { c.Optimizer = optim.SGD{Momentum: 1} }, optim.ErrOptimizer,
		"zero: options: optim: setting: SGD's momentum 1: use at least 0 and less than 1"},
	{"empty optimizer", func(c *zeroshard.Config) { c.Optimizer = optim.AdamW{} }, optim.ErrOptimizer,
		"zero: options: optim: setting: AdamW's eps 0: use more than 0 and less than 1"},
	{"sequence above positions", func(c *zeroshard.Config) { c.Seq = 17 }, gpt.ErrShape,
		"zero: options: gpt: bad shape: sequences of 17 tokens, the model has 16 positions"},
}

func TestValidateNamesEveryFault(t *testing.T) {
	if err := micro(t).Validate(); err != nil {
		t.Fatalf("a good config: %v", err)
	}
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			c := micro(t)
			f.spoil(&c)
			err := c.Validate()
			if !errors.Is(err, f.sentinel) || !(errors.Is(err, zero.ErrOptions) || errors.Is(err, zero.ErrStrategy)) {
				t.Errorf("%v is not %v", err, f.sentinel)
			}
			if fmt.Sprint(err) != f.text {
				t.Errorf("got  %v\nwant %s", err, f.text)
			}
			if _, planErr := zeroshard.Plan(c); fmt.Sprint(planErr) != f.text {
				t.Errorf("Plan says %v", planErr)
			}
			if cl, localErr := zeroshard.Local(ctx, c); cl != nil || fmt.Sprint(localErr) != f.text {
				t.Errorf("Local gives %v, %v", cl, localErr)
			}
		})
	}
}

// Faults that do not touch each other's settings are all reported, each on a line of its own.
func TestValidateReportsAllFaultsAtOnce(t *testing.T) {
	c := micro(t)
	var want []string
	for _, f := range faults {
		switch f.name {
		case "negative ranks", "no batch", "no sequence", "no micro-batch", "micro-batch above the batch", "stage below", "ranks do not divide", "no model",
			"clip below", "clip NaN", "empty optimizer":
			continue // another fault of the same setting stands for it
		}
		f.spoil(&c)
		want = append(want, f.text)
	}
	got := lines(c.Validate())
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// twice is a model whose flats have one name.
type twice struct{ odd }

func (twice) Flats() []shard.FlatSpec { return append(odd{}.Flats(), odd{}.Flats()...) }

// hollow is a model without units.
type hollow struct{ odd }

func (hollow) Units() []models.Unit { return nil }

// What only the whole can say is refused by Plan, as an option that is wrong.
func TestPlanRefusesWhatDoesNotFitTogether(t *testing.T) {
	for _, c := range []struct {
		name     string
		spoil    func(*zeroshard.Config)
		sentinel error
		text     string
	}{
		{"more ranks than leaves", func(c *zeroshard.Config) { c.Ranks = 9 }, shard.ErrWorld, "use at most 8 ranks, or at least 9 leaves"},
		{"replicas", func(c *zeroshard.Config) { c.GlobalBatch, c.Ranks, c.Replicas = 12, 2, 2 }, shard.ErrWorld, "numbers of replicas that do: [1 3 6 12]"},
		{"window", func(c *zeroshard.Config) { c.Window = 3 }, shard.ErrWindows, "want a power of two up to 4"},
		{"two flats of a name", func(c *zeroshard.Config) { c.Model = twice{} }, shard.ErrLayout, `flat "table": a flat of this name exists already`},
		{"no units", func(c *zeroshard.Config) { c.Model = hollow{} }, zero.ErrOptions, "the model has no units"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := micro(t)
			c.spoil(&cfg)
			_, err := zeroshard.Plan(cfg)
			if !errors.Is(err, zero.ErrOptions) || !errors.Is(err, c.sentinel) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("got %v, want an option, %v, with %q", err, c.sentinel, c.text)
			}
		})
	}
}

// Zero values are the defaults that the comments promise.
func TestZeroValuesAreDefaults(t *testing.T) {
	implicit := micro(t)
	implicit.EvalLeaves = 0
	explicit := implicit
	explicit.Replicas, explicit.Threads, explicit.EvalLeaves, explicit.Texts = 1, 1, 1, 1
	explicit.Optimizer, explicit.Precision = optim.DefaultAdamW(), zero.FP32
	var programs, states []string
	for _, c := range []zeroshard.Config{implicit, explicit} {
		cl := local(t, c)
		steps(t, cl, c, 1, 2)
		programs, states = append(programs, cl.Program().SHA256()), append(states, hash(t, cl))
		if n := cl.Program().Eval.Options.Leaves; n != 1 {
			t.Errorf("an evaluation has %d leaves", n)
		}
	}
	if programs[0] != programs[1] || states[0] != states[1] {
		t.Errorf("programs %v, states %v", programs, states)
	}
}

func program(t testing.TB, c zeroshard.Config) *zero.Program {
	t.Helper()
	pr, err := zeroshard.Plan(c)
	if err != nil {
		t.Fatal(err)
	}
	return pr
}

// Plan gives the same program again, and Local runs that one. Its hash covers what ranks must agree on, so it depends on neither the
// threads of a rank nor anything that is no part of the plan.
func TestPlanIsPure(t *testing.T) {
	for stage := range zero.Stages {
		for _, ranks := range []int{1, 3} {
			c := micro(t)
			c.Stage, c.Ranks, c.Prefetch = stage, ranks, 1
			want := program(t, c)
			for name, change := range map[string]func(*zeroshard.Config){
				"again":         func(*zeroshard.Config) {},
				"threads":       func(c *zeroshard.Config) { c.Threads = 5 },
				"seed":          func(c *zeroshard.Config) { c.Seed = 99 },
				"clip":          func(c *zeroshard.Config) { c.Clip = 0 },
				"device memory": func(c *zeroshard.Config) { c.DeviceMemory = 1 << 40 },
				"betas":         func(c *zeroshard.Config) { c.Optimizer = optim.AdamW{Beta1: 0.5, Beta2: 0.5, Eps: 1e-3} },
			} {
				other := c
				change(&other)
				got := program(t, other)
				if got.SHA256() != want.SHA256() {
					t.Errorf("stage %d, %d ranks, %s: the hash is another", stage, ranks, name)
				}
				if a, b := got.Cost(), want.Cost(); a.Peak()-a.Scratch != b.Peak()-b.Scratch {
					t.Errorf("stage %d, %d ranks, %s: peaks without kernel scratch %d and %d", stage, ranks, name, a.Peak()-a.Scratch, b.Peak()-b.Scratch)
				}
			}
			if cl := local(t, c); cl.Program().SHA256() != want.SHA256() {
				t.Errorf("stage %d, %d ranks: Local runs another program", stage, ranks)
			}
		}
	}
}

// Every setting that changes what ranks do changes the hash.
func TestPlanHashTellsSettingsApart(t *testing.T) {
	base := micro(t)
	base.Stage, base.Ranks, base.Prefetch = 3, 4, 1
	seen := map[string]string{program(t, base).SHA256(): "base"}
	for name, change := range map[string]func(*zeroshard.Config){
		"model":       func(c *zeroshard.Config) { c.Model = preset(t, "tiny").Model },
		"optimizer":   func(c *zeroshard.Config) { c.Optimizer = optim.SGD{Momentum: 0.9} },
		"ranks":       func(c *zeroshard.Config) { c.Ranks = 2 },
		"stage 0":     func(c *zeroshard.Config) { c.Stage = 0 },
		"stage 1":     func(c *zeroshard.Config) { c.Stage = 1 },
		"stage 2":     func(c *zeroshard.Config) { c.Stage = 2 },
		"window":      func(c *zeroshard.Config) { c.Stage, c.Window = 0, 1 },
		"replicas":    func(c *zeroshard.Config) { c.Replicas = 2 },
		"batch":       func(c *zeroshard.Config) { c.GlobalBatch = 16 },
		"micro-batch": func(c *zeroshard.Config) { c.GlobalBatch, c.MicroBatch = 16, 2 },
		"sequence":    func(c *zeroshard.Config) { c.Seq = 9 },
		"evaluation":  func(c *zeroshard.Config) { c.EvalLeaves = 4 },
		"texts":       func(c *zeroshard.Config) { c.Texts = 2 },
		"inference":   func(c *zeroshard.Config) { c.Inference = true },
		"recompute":   func(c *zeroshard.Config) { c.Recompute = 1 },
		"every other": func(c *zeroshard.Config) { c.Recompute = 2 },
		"prefetch":    func(c *zeroshard.Config) { c.Prefetch = 2 },
		"threshold":   func(c *zeroshard.Config) { c.PersistenceThreshold = 100 },
		"keep last":   func(c *zeroshard.Config) { c.KeepLast = true },
		"precision":   func(c *zeroshard.Config) { c.Precision = zero.BF16 },
	} {
		c := base
		change(&c)
		h := program(t, c).SHA256()
		if other, ok := seen[h]; ok {
			t.Errorf("%s and %s have one hash", name, other)
		}
		seen[h] = name
	}
}

// 16-bit training can be planned, and is refused by name where it would run.
func TestBF16IsPlannedNotRun(t *testing.T) {
	c := micro(t)
	c.Precision = zero.BF16
	if got := program(t, c).Cost().ModelState; got == 0 {
		t.Error("no model state")
	}
	_, err := zeroshard.Local(ctx, c)
	if !errors.Is(err, zero.ErrOptions) || !strings.Contains(fmt.Sprint(err), "can be planned but not run yet: use fp32") {
		t.Errorf("Local: %v", err)
	}
}
