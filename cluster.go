package zeroshard

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	"golang.org/x/sync/errgroup"

	"zeroshard/collectives"
	"zeroshard/collectives/inproc"
	"zeroshard/device"
	dcpu "zeroshard/device/cpu"
	"zeroshard/kernels"
	"zeroshard/memory"
	"zeroshard/models"
	"zeroshard/offload"
	"zeroshard/optim"
	"zeroshard/prng"
	"zeroshard/shard"
	"zeroshard/zero"
)

// Cluster is the ranks of this process. Its methods run all of them and are collective: call one at a time, Close among them.
//
//  1. What is wrong with arguments that all ranks are given alike is found before any op is issued: the error costs nothing, and
//     the cluster is as good as before.
//  2. An error that one rank meets (a micro-batch that cannot be had, an op that fails, a context that ends) ends the
//     cluster on all ranks: the others are in the middle of the same plan. The next calls return that error again.
type Cluster struct {
	config  Config
	program *zero.Program
	ranks   []*rank
	wire    []zero.Traffic // of the last Step
	cached  [][]int32      // by text: tokens that the caches hold
	viewed  bool           // a view of parameters was given away
	closed  bool
}

type rank struct {
	engine  *zero.Engine
	device  *dcpu.Device
	pool    *dcpu.Pool
	tracker *memory.Tracker
	sent    map[shard.Axis]*collectives.Counter
	tiers   map[string]offload.Tier // by name, as the engine has them
}

// Option changes how Local wires the ranks: for tests and tools.
type Option func(*wiring)

type wiring struct {
	device  func(rank int, d device.Device) device.Device
	kernels func(rank int, k kernels.Backend) kernels.Backend
	group   func(rank int, axis shard.Axis, g collectives.Group) collectives.Group
	observe func(rank int) []memory.Observer
	watch   func(rank int) zero.Watcher
	tier    func(rank int, name string, t offload.Tier) offload.Tier
}

// WithDevice wraps each rank's device.
func WithDevice(wrap func(rank int, d device.Device) device.Device) Option {
	return func(w *wiring) { w.device = wrap }
}

// WithKernels wraps or replaces each rank's arithmetic.
func WithKernels(wrap func(rank int, k kernels.Backend) kernels.Backend) Option {
	return func(w *wiring) { w.kernels = wrap }
}

// WithGroup wraps each rank's end of each group.
func WithGroup(wrap func(rank int, axis shard.Axis, g collectives.Group) collectives.Group) Option {
	return func(w *wiring) { w.group = wrap }
}

// WithTier wraps each rank's tiers.
func WithTier(wrap func(rank int, name string, t offload.Tier) offload.Tier) Option {
	return func(w *wiring) { w.tier = wrap }
}

// WithWatcher lets someone watch where each rank stands in its plan.
func WithWatcher(watch func(rank int) zero.Watcher) Option {
	return func(w *wiring) { w.watch = watch }
}

// WithObservers adds observers of each rank's memory.
func WithObservers(observe func(rank int) []memory.Observer) Option {
	return func(w *wiring) { w.observe = observe }
}

// Local makes the ranks of a run as goroutines of this process, on CPU devices, and sets initial values. A run that would not fit into
// Config.DeviceMemory is refused before anything is reserved (*FitError).
func Local(ctx context.Context, c Config, options ...Option) (*Cluster, error) {
	pr, err := Plan(c)
	if err != nil {
		return nil, err
	}
	if err := CheckFit(c, pr); err != nil {
		return nil, err
	}
	var w wiring
	for _, o := range options {
		o(&w)
	}
	cl := &Cluster{config: c.withDefaults(), program: pr, wire: make([]zero.Traffic, c.Ranks)}
	groups, err := localGroups(pr.Mesh())
	if err != nil {
		return nil, err
	}
	for r := range cl.config.Ranks {
		rk := cl.newRank(r)
		for axis, g := range groups[r] {
			if w.group != nil {
				g = w.group(r, axis, g)
			}
			rk.sent[axis] = collectives.Counting(g)
		}
	}
	if err := cl.start(ctx, &w); err != nil {
		return nil, errors.Join(err, cl.Close())
	}
	return cl, nil
}

// localGroups makes every rank's groups: its shards, its replicas, the world.
func localGroups(m shard.Mesh) ([]map[shard.Axis]collectives.Group, error) {
	out := make([]map[shard.Axis]collectives.Group, m.World())
	for r := range out {
		out[r] = map[shard.Axis]collectives.Group{}
	}
	for _, axis := range []shard.Axis{shard.Shards, shard.Replicate, shard.World} {
		for r := range out {
			members := m.Ranks(r, axis)
			if members[0] != r {
				continue
			}
			ends, err := inproc.New(len(members), func(int) collectives.Folder { return newKernels(nil) })
			if err != nil {
				return nil, err
			}
			for i, member := range members {
				out[member][axis] = ends[i]
			}
		}
	}
	return out, nil
}

func (c *Cluster) newRank(r int) *rank {
	rk := &rank{device: dcpu.New(dcpu.Options{Name: fmt.Sprintf("cpu rank %d", r)}), pool: dcpu.NewPool(c.config.threads()),
		tracker: memory.NewTracker(), sent: map[shard.Axis]*collectives.Counter{}}
	c.ranks = append(c.ranks, rk)
	return rk
}

// start makes the engines, together: they agree on the program first.
func (c *Cluster) start(ctx context.Context, w *wiring) error {
	key := prng.New(c.config.Seed)
	return c.each(func(r int, rk *rank) (err error) {
		var dev device.Device = rk.device
		if w.device != nil {
			dev = w.device(r, dev)
		}
		k := newKernels(rk.pool)
		if w.kernels != nil {
			k = w.kernels(r, k)
		}
		observers := []memory.Observer{rk.tracker}
		if c.config.DeviceMemory > 0 {
			observers = append(observers, memory.NewLimit(c.config.DeviceMemory))
		}
		if w.observe != nil {
			observers = append(observers, w.observe(r)...)
		}
		groups := map[shard.Axis]collectives.Group{}
		for axis, g := range rk.sent {
			groups[axis] = g
		}
		var watch zero.Watcher
		if w.watch != nil {
			watch = w.watch(r)
		}
		if rk.tiers = c.config.Offload.tiers(r); w.tier != nil {
			for name, t := range rk.tiers {
				rk.tiers[name] = w.tier(r, name, t)
			}
		}
		rk.engine, err = zero.New(ctx, zero.Config{Rank: r, Watch: watch, Program: c.program, Model: c.config.Model, Optimizer: c.config.Optimizer,
			Device: dev, Arena: memory.NewArena(dev, observers...), Net: k, Vector: k, Groups: groups,
			Tiers: rk.tiers, Key: key.Named("dropout"), Clip: c.config.Clip})
		if err != nil {
			return err
		}
		if c.config.Inference {
			return nil
		}
		return c.initialize(rk, key.Named("init"))
	})
}

// initialize sets a rank's slice of every parameter.
func (c *Cluster) initialize(rk *rank, key prng.Key) error {
	m, ok := c.config.Model.(models.Initializer)
	if !ok {
		return nil
	}
	for _, f := range c.program.Layout.Flats {
		for _, seg := range f.Segs {
			err := rk.engine.Write(seg.Param.Name, zero.Master, func(lo int, dst []float32) error {
				m.Init(key, seg.Param, lo, dst)
				return nil
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// each runs f for every rank at the same time.
func (c *Cluster) each(f func(r int, rk *rank) error) error {
	var g errgroup.Group
	errs := make([]error, len(c.ranks))
	for r, rk := range c.ranks {
		g.Go(func() error {
			errs[r] = f(r, rk)
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	return cause(errs)
}

// cause picks from the ranks' errors: a rank's own before those that peers were told.
func cause(errs []error) (told error) {
	for _, err := range errs {
		var abort *collectives.AbortError
		switch {
		case err == nil:
		case !errors.As(err, &abort):
			return err
		case told == nil:
			told = err
		}
	}
	return told
}

// ready is what all ranks would answer alike before they issue anything. Unless the method called name keepsCaches, they hold nothing
// from now on.
func (c *Cluster) ready(ctx context.Context, name string, keepsCaches bool) error {
	if !keepsCaches {
		c.cached = nil
	}
	if c.closed {
		return fmt.Errorf("%w: %s came after Close", zero.ErrClosed, name)
	}
	errs := make([]error, len(c.ranks))
	for r, rk := range c.ranks {
		errs[r] = rk.engine.Err()
	}
	if err := cause(errs); err != nil {
		return fmt.Errorf("zeroshard: %s after a failure, which ended the cluster: %w", name, err)
	}
	if ctx.Err() != nil {
		return fmt.Errorf("zeroshard: %s: %w", name, context.Cause(ctx))
	}
	return nil
}

// Program is the plans that the ranks run.
func (c *Cluster) Program() *zero.Program { return c.program }

// Step trains on one global batch. leaf gives the micro-batch of a number in [0, GlobalBatch/MicroBatch); it is called from several
// goroutines, once for each leaf. An error of leaf ends the cluster; one of h (optim.ErrOptimizer) does not.
func (c *Cluster) Step(ctx context.Context, leaf func(leaf int) (zero.Batch, error), h optim.Hyper) (zero.Stats, error) {
	if err := errors.Join(c.ready(ctx, "Step", false), h.Validate()); err != nil {
		return zero.Stats{}, err
	}
	if c.config.Inference {
		return zero.Stats{}, fmt.Errorf("%w: the cluster was made for inference and cannot train", zero.ErrOptions)
	}
	stats := make([]zero.Stats, len(c.ranks))
	for _, rk := range c.ranks {
		for _, s := range rk.sent {
			s.Reset()
		}
	}
	err := c.each(func(r int, rk *rank) error {
		micro, err := c.batches(c.program.Train, r, leaf)
		if err != nil {
			return rk.engine.Fail(err)
		}
		stats[r], err = rk.engine.Step(ctx, micro, h)
		return err
	})
	for r, rk := range c.ranks {
		c.wire[r] = rk.traffic()
	}
	return stats[0], err
}

// Eval computes the loss over EvalLeaves micro-batches and changes nothing. leaf is as in Step.
func (c *Cluster) Eval(ctx context.Context, leaf func(leaf int) (zero.Batch, error)) (zero.Loss, error) {
	if err := c.ready(ctx, "Eval", false); err != nil {
		return zero.Loss{}, err
	}
	losses := make([]zero.Loss, len(c.ranks))
	err := c.each(func(r int, rk *rank) error {
		micro, err := c.batches(c.program.Eval, r, leaf)
		if err != nil {
			return rk.engine.Fail(err)
		}
		losses[r], err = rk.engine.Eval(ctx, micro)
		return err
	})
	return losses[0], err
}

// checkTokens asks the model whether it has the tokens, where it knows.
func (c *Cluster) checkTokens(b zero.Batch) error {
	m, ok := c.config.Model.(models.TokenChecker)
	if !ok {
		return nil
	}
	if err := m.CheckTokens(b.Tokens, b.Targets); err != nil {
		return fmt.Errorf("%w: %w", zero.ErrBatch, err)
	}
	return nil
}

// guarded calls the user's leaf; a panic in it is an error of that micro-batch.
func guarded(leaf func(int) (zero.Batch, error), l int) (b zero.Batch, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &device.PanicError{Label: fmt.Sprintf("micro-batch %d", l), Value: v, Stack: debug.Stack()}
		}
	}()
	return leaf(l)
}

func (c *Cluster) batches(p *zero.Plan, rank int, leaf func(int) (zero.Batch, error)) ([]zero.Batch, error) {
	leaves := p.Leaves(rank)
	out := make([]zero.Batch, len(leaves))
	for slot, l := range leaves {
		if l < 0 {
			continue
		}
		b, err := guarded(leaf, l)
		if err == nil {
			err = c.checkTokens(b)
		}
		if err != nil {
			return nil, fmt.Errorf("zeroshard: micro-batch %d: %w", l, err)
		}
		out[slot] = b
	}
	return out, nil
}

// Wire is the bytes that each rank sent in the last Step, counted.
func (c *Cluster) Wire() []zero.Traffic { return slices.Clone(c.wire) }

// traffic is what the rank has sent since the counters were reset.
func (rk *rank) traffic() (t zero.Traffic) {
	for axis, s := range rk.sent {
		n := s.Sent()
		if axis == shard.World {
			t.Scalars += n[collectives.AllGather]
			continue
		}
		t.AllGather += n[collectives.AllGather]
		t.ReduceScatter += n[collectives.ReduceScatter]
	}
	return t
}

// RankMemory is one rank's device memory, in bytes.
type RankMemory struct {
	Rank              int
	Planned, Used     int64            // peak: as the plan says, and as the device gave out
	PlannedBy, UsedBy map[string]int64 // by kind, at the moment when most is live; "hole" is what no buffer uses then
	Live              int64            // live now
}

// Memory says what was planned and what was used.
func (c *Cluster) Memory() []RankMemory {
	out := make([]RankMemory, len(c.ranks))
	cost := c.program.Cost()
	for r, rk := range c.ranks {
		_, live := rk.tracker.Peak()
		used := zero.Cost{Live: live, Hole: rk.device.Peak() - live.Sum()}
		out[r] = RankMemory{Rank: r, Planned: cost.Peak(), Used: rk.device.Peak(), PlannedBy: cost.ByKind(), UsedBy: used.ByKind(),
			Live: rk.tracker.Snapshot().Live.Sum()}
	}
	return out
}

// Close ends all ranks and frees their memory; views of Piece are dead then. What was counted (Memory, Wire) can still be asked for.
// A second Close does nothing.
func (c *Cluster) Close() error {
	if c.closed {
		return nil
	}
	c.closed = true
	var errs []error
	for _, rk := range c.ranks {
		if rk.engine != nil {
			errs = append(errs, rk.engine.Close())
		}
		errs = append(errs, rk.device.Close())
		rk.pool.Close()
	}
	return errors.Join(errs...)
}
