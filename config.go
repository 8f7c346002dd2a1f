package zeroshard

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"runtime"

	"zeroshard/kernels"
	kcpu "zeroshard/kernels/cpu"
	"zeroshard/models"
	"zeroshard/optim"
	"zeroshard/shard"
	"zeroshard/zero"
)

// Config describes a run. The zero value of each field but Model, Ranks, GlobalBatch, MicroBatch and Seq is a sensible default.
type Config struct {
	// Model is what to train. If it is a models.Initializer it also says its initial values. Bits: changed.
	Model models.Model
	// Optimizer updates the weights; nil is AdamW with its defaults. Bits: changed.
	Optimizer optim.Optimizer
	// Ranks is the world size. Bits: unchanged.
	Ranks int
	// Stage is the ZeRO stage, 0 to 3. Bits: unchanged.
	Stage int
	// Replicas is the number of replicas of hybrid sharding: the mesh is Replicas × Ranks/Replicas; 0 is 1. Bits: unchanged.
	Replicas int
	// Threads is the number of threads of a rank's kernels; 0 is its share of the cores, at least 1. Bits: unchanged.
	Threads int
	// GlobalBatch is sequences per step over all ranks, MicroBatch sequences per leaf, Seq tokens per sequence. Bits: changed.
	GlobalBatch, MicroBatch, Seq int
	// EvalLeaves is the micro-batches of one Eval; 0 is 1. Bits: unchanged.
	EvalLeaves int
	// Texts is how many texts Scores goes on with side by side; 0 is 1. Bits: unchanged.
	Texts int
	// Inference is for a cluster that does not train: it holds parameters alone, zero until Load or Set gives them. It needs no GlobalBatch, and
	// a MicroBatch of 0 is 1. Bits: unchanged.
	Inference bool
	// Recompute is activation checkpointing: 0 none, 1 all blocks, n every n-th. Bits: unchanged.
	Recompute int
	// Prefetch is how many ops ahead of its use a layer is gathered. Bits: unchanged.
	Prefetch int
	// Window is the leaves that a rank folds before it sends, where gradients are replicated; 0 is the largest. Bits: unchanged.
	Window int
	// PersistenceThreshold is the elements below which a parameter stays whole on every rank at stage 3. Bits: unchanged.
	PersistenceThreshold int
	// KeepLast gathers the last block once for its forward and backward. Bits: unchanged.
	KeepLast bool
	// Precision is the dtypes of a step; the zero value is fp32, the only one that runs yet. Bits: changed.
	Precision zero.Precision
	// Clip is the global gradient norm to clip to; 0 is off. Bits: changed.
	Clip float64
	// Seed is the source of initial values and dropout. Bits: changed.
	Seed uint64
	// Offload is what rests outside device memory. Bits: unchanged.
	Offload Offload
	// DeviceMemory is the limit of a rank's device memory in bytes; 0 is none. Bits: unchanged.
	DeviceMemory int64
}

// shaper is a model that cannot take every shape of leaf.
type shaper interface{ CheckShape(models.Shape) error }

func (c Config) withDefaults() Config {
	if c.Optimizer == nil {
		c.Optimizer = optim.DefaultAdamW()
	}
	if c.Precision == (zero.Precision{}) {
		c.Precision = zero.FP32
	}
	c.Replicas, c.EvalLeaves, c.Texts = max(c.Replicas, 1), max(c.EvalLeaves, 1), max(c.Texts, 1)
	return c.settled()
}

// settled fills in what inference does not need.
func (c Config) settled() Config {
	if c.Inference {
		c.MicroBatch = cmp.Or(c.MicroBatch, 1)
		c.GlobalBatch = c.MicroBatch
	}
	return c
}

// threads is Threads with its default, which depends on Ranks.
func (c Config) threads() int {
	if c.Threads > 0 {
		return c.Threads
	}
	return max(1, runtime.GOMAXPROCS(0)/max(c.Ranks, 1))
}

// Bounds of what is taken at its word: far above what makes sense, far below what overflows.
const (
	maxThreads = 4096
	maxRanks   = 1 << 20
)

// validator is an optimizer whose settings can be wrong.
type validator interface{ Validate() error }

// Validate reports all faults at once that a setting has by itself; they wrap zero.ErrOptions or zero.ErrStrategy. What several
// settings must agree on with the model and the mesh (leaves for every rank, windows, a layout) is Plan's to refuse.
func (c Config) Validate() error {
	c = c.settled()
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf("%w: "+format, append([]any{zero.ErrOptions}, args...)...))
		}
	}
	check(c.Model != nil, "no model")
	check(c.Ranks >= 1, "%d ranks: at least 1 is needed", c.Ranks)
	check(c.Ranks <= maxRanks, "%d ranks: at most %d", c.Ranks, maxRanks)
	check(c.Threads <= maxThreads, "%d threads: at most %d", c.Threads, maxThreads)
	check(c.GlobalBatch >= 1 && c.MicroBatch >= 1 && c.Seq >= 1, "global batch %d, micro-batch %d, sequence %d: all must be at least 1", c.GlobalBatch, c.MicroBatch, c.Seq)
	check(c.MicroBatch < 1 || c.GlobalBatch < 1 || c.GlobalBatch%c.MicroBatch == 0, "a global batch of %d sequences does not divide into micro-batches of %d", c.GlobalBatch, c.MicroBatch)
	check(c.Ranks < 1 || c.Replicas < 1 || c.Ranks%c.Replicas == 0, "%d ranks do not divide into %d replicas", c.Ranks, c.Replicas)
	for _, n := range [...]struct {
		name  string
		value int64
	}{
		{"replicas", int64(c.Replicas)}, {"threads", int64(c.Threads)}, {"evaluation leaves", int64(c.EvalLeaves)}, {"recompute", int64(c.Recompute)}, {"texts", int64(c.Texts)},
		{"prefetch", int64(c.Prefetch)}, {"window", int64(c.Window)}, {"persistence threshold", int64(c.PersistenceThreshold)}, {"device memory", c.DeviceMemory},
	} {
		check(n.value >= 0, "%s %d: it cannot be negative", n.name, n.value)
	}
	check(c.Clip >= 0 && !math.IsInf(c.Clip, 0), "clip %v: use a norm above 0, or 0 for off", c.Clip)
	_, err := zero.Stage(c.Stage)
	errs = append(errs, err, c.withDefaults().Precision.Validate(), c.Offload.validate(c.Stage))
	if o, ok := c.Optimizer.(validator); ok {
		if err := o.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("%w: %w", zero.ErrOptions, err))
		}
	}
	if m, ok := c.Model.(shaper); ok && c.MicroBatch >= 1 && c.Seq >= 1 {
		if err := m.CheckShape(models.Shape{Batch: c.MicroBatch, Seq: c.Seq}); err != nil {
			errs = append(errs, fmt.Errorf("%w: %w", zero.ErrOptions, err))
		}
	}
	return errors.Join(errs...)
}

// Plan compiles what Local would run: a pure function, no memory is reserved.
func Plan(c Config) (*zero.Program, error) {
	layout, strategy, mesh, o, err := c.compileArgs(nil)
	if err != nil {
		return nil, err
	}
	return zero.CompileAll(layout, c.Model, strategy, mesh, o)
}

// compileArgs is the run as the compiler takes it. A layout that is there already is taken as it is.
func (c Config) compileArgs(known *shard.Layout) (l *shard.Layout, s zero.Strategy, m shard.Mesh, o zero.Options, err error) {
	if err = c.Validate(); err != nil {
		return
	}
	c = c.withDefaults()
	if s, err = zero.Stage(c.Stage); err != nil {
		return
	}
	s = c.Offload.strategy(s)
	if l = known; l == nil {
		if l, err = shard.NewLayout(c.Model.Flats(), c.PersistenceThreshold); err != nil {
			err = fmt.Errorf("%w: %w", zero.ErrOptions, err)
			return
		}
	}
	if m, err = shard.NewMesh(c.Replicas, c.Ranks/c.Replicas); err != nil {
		err = fmt.Errorf("%w: %w", zero.ErrOptions, err)
		return
	}
	o = zero.Options{
		Leaves: c.GlobalBatch / c.MicroBatch, Shape: models.Shape{Batch: c.MicroBatch, Seq: c.Seq}, Precision: c.Precision,
		States: c.Optimizer.States(), Prefetch: c.Prefetch, Recompute: c.Recompute, Window: c.Window, KeepLast: c.KeepLast,
		EvalLeaves: c.EvalLeaves, Texts: c.Texts, Inference: c.Inference, SubGroup: c.Offload.SubGroup, Needs: zero.Needs{Scratch: backendScratch(c.threads())},
	}
	return
}

// newKernels is the default arithmetic of a rank.
func newKernels(pool kernels.Pool) kernels.Backend { return kcpu.New(pool) }

// backendScratch is what newKernels will ask for with so many threads.
func backendScratch(threads int) int64 { return newKernels(threadCount(threads)).Scratch() }

// threadCount is a pool that only knows its size.
type threadCount int

func (n threadCount) Threads() int { return int(n) }

// Run does the parts one after the other.
func (n threadCount) Run(parts int, t kernels.Task) {
	for i := range parts {
		t.Part(i)
	}
}
