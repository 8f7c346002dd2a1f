package zero

import (
	"errors"
	"fmt"

	"zeroshard/device"
	"zeroshard/memory"
	"zeroshard/models"
	"zeroshard/shard"
)

// compiler holds what the passes share. Each pass is a function from a list of ops to a list of ops:
//
//	base      feed, forward, recompute, loss, backward over units × leaves
//	gathers   gather before use, reshard after the last use           (reads Strategy.Param)
//	prefetch  gathers move ahead
//	reduces   clear, merge, reduce-scatter of gradients               (reads Strategy.Grad)
//	ends      square, norm, update, publish                           (reads Strategy.Optim × Param)
//	tiers     fetch before and evict after what uses tiered state     (reads each Tier)
//	place     lifetimes → places → waits
type compiler struct {
	resolved
	o    Options
	bufs []Buf
	err  error
}

// unitInfo is a unit with the flats that it reads.
type unitInfo struct {
	models.Unit
	sizes     models.Sizes
	flats     []int  // that Forward reads, and whose gradients Backward writes
	back      []bool // by flats: Backward reads it too
	add       bool   // its gradients are added to what is there
	recompute bool
}

// flatInfo is a flat with its resident buffers.
type flatInfo struct {
	*shard.Flat
	shardLen, fullLen int

	gatherParam bool // values are sharded: gather before use
	shardGrad   bool // gradients rest sharded
	shardOptim  bool // optimizer state is sharded
	clearAll    bool // gradients of several units meet here

	param, grad, master int   // resident buffers; master is param where both have one dtype
	states              []int // resident
}

func (f *flatInfo) trainable() bool { return f.Class != shard.Frozen }

// Compile returns the plan of one step, the same for every rank: a pure function of its arguments.
func Compile(l *shard.Layout, m models.Model, s Strategy, mesh shard.Mesh, o Options) (*Plan, error) {
	if err := mesh.Validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	if err := errors.Join(s.Validate(), o.Validate()); err != nil {
		return nil, err
	}
	c := &compiler{resolved: resolved{layout: l, mesh: mesh}, o: o.withDefaults()}
	if err := errors.Join(c.windows(s), c.resolve(m)); err != nil {
		return nil, err
	}
	c.residents(s)
	ops := c.base()
	ops = c.gathers(ops)
	ops = c.prefetch(ops)
	if c.o.Mode == models.Train {
		ops = c.reduces(ops)
	}
	ops = c.tiers(c.ends(ops))
	if c.err != nil {
		return nil, c.err
	}
	p := &Plan{Strategy: s, Mesh: mesh, Windows: c.win, Options: c.o, Ops: ops, Bufs: c.bufs, model: &c.resolved}
	p.place()
	p.wait()
	return p, nil
}

// windows chooses the leaves of each rank. Only training needs a leaf for every rank.
func (c *compiler) windows(s Strategy) error {
	replicas, ranks := c.mesh.Size(shard.Replicate), c.mesh.Size(shard.Shards)
	leaves, err := c.o.Leaves, error(nil)
	if c.o.Mode != models.Train {
		c.win, err = shard.EvalWindows(leaves, c.mesh.World())
	} else if leaves, err = shard.ReplicaLeaves(leaves, replicas); err == nil {
		c.win, err = shard.NewWindows(leaves, ranks, c.o.gradWindow(s.Grad.Over != shard.None && (ranks > 1 || s.Grad.Tier != "")))
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrOptions, err)
	}
	return nil
}

// resolve finds the flats of each unit and checks the model against its own contract.
func (c *compiler) resolve(m models.Model) error {
	units := m.Units()
	if len(units) == 0 {
		return fmt.Errorf("%w: the model has no units", ErrOptions)
	}
	c.specs = map[string][]string{}
	for _, spec := range m.Flats() {
		c.specs[spec.Name] = nil
		for _, p := range spec.Params {
			c.specs[spec.Name] = append(c.specs[spec.Name], p.Name)
		}
	}
	for i, u := range units {
		if u == nil {
			return fmt.Errorf("%w: unit %d of the model is nil", ErrOptions, i)
		}
	}
	readers := make([]int, len(c.layout.Flats))
	for i, u := range units {
		info := unitInfo{Unit: u, sizes: u.Sizes(c.o.Shape, c.o.Mode)}
		forward, backward := u.Reads()
		for _, spec := range forward {
			if _, ok := c.specs[spec]; !ok {
				return fmt.Errorf("%w: unit %q reads flat %q, which the model does not have", ErrOptions, u.Name(), spec)
			}
			reads := false
			for _, b := range backward {
				reads = reads || b == spec
			}
			for _, f := range c.layout.BySpec(spec) {
				info.flats = append(info.flats, f)
				info.back = append(info.back, reads)
				readers[f]++
			}
		}
		if i < len(units)-1 && info.sizes.Out == 0 {
			return fmt.Errorf("%w: unit %q has no output", ErrOptions, u.Name())
		}
		for _, b := range backward {
			if !contains(forward, b) {
				return fmt.Errorf("%w: unit %q reads %q in backward but not in forward", ErrOptions, u.Name(), b)
			}
		}
		c.units = append(c.units, info)
	}
	for f, n := range readers {
		if n == 0 && c.layout.Flats[f].Class != shard.Frozen {
			return fmt.Errorf("%w: no unit reads the trainable parameters of %q: leave them out, or mark them frozen", ErrOptions, c.layout.Flats[f].Spec)
		}
	}
	c.shared(readers)
	checkpointed := 0
	for i := range c.units[:len(c.units)-1] {
		if u := &c.units[i]; c.o.Recompute > 0 && u.sizes.Saved > 0 {
			u.recompute = checkpointed%c.o.Recompute == 0
			checkpointed++
		}
	}
	return nil
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

// shared finds gradients that several units write. Call.Add is one word per unit, so a unit that shares one flat adds to all.
func (c *compiler) shared(readers []int) {
	c.flats = make([]flatInfo, len(c.layout.Flats))
	for i := range c.layout.Flats {
		c.flats[i].Flat = &c.layout.Flats[i]
	}
	for changed := true; changed; {
		changed = false
		for i := range c.units {
			u := &c.units[i]
			for _, f := range u.flats {
				if (readers[f] > 1 || c.flats[f].clearAll) && !u.add {
					u.add, changed = true, true
				}
			}
			for _, f := range u.flats {
				if u.add && !c.flats[f].clearAll {
					c.flats[f].clearAll, changed = true, true
				}
			}
		}
	}
}

// residents makes the buffers that live as long as the engine: model state at rest, as each flat's row says.
func (c *compiler) residents(s Strategy) {
	p, offloads := c.o.Precision, s.offloads(c.layout)
	for i := range c.flats {
		f := &c.flats[i]
		row := s.row(f.Flat)
		over := func(r Rest) bool { return r.Over != shard.None && (c.mesh.Size(r.Over) > 1 || r.Tier != "") }
		f.gatherParam, f.shardGrad, f.shardOptim = over(row.Param), over(row.Grad), over(row.Optim)
		if !offloads[i] {
			row.Grad.Tier, row.Optim.Tier = "", "" // sharded as the others, on the device
		}
		f.shardLen, f.fullLen = c.layout.ShardLen(i, c.mesh), c.layout.FullLen(i, c.mesh)
		size := func(sharded bool) int {
			if sharded {
				return f.shardLen
			}
			return f.fullLen
		}
		f.param = c.resident(i, "parameter", memory.Parameter, size(f.gatherParam), row.Param.Tier)
		f.master, f.grad = f.param, none
		if !f.trainable() || c.o.Inference {
			continue
		}
		kind := memory.Gradient
		if f.shardGrad {
			kind = memory.GradientShard
		}
		f.grad = c.resident(i, "gradient at rest", kind, size(f.shardGrad), row.Grad.Tier)
		if p.Compute != p.Master {
			f.master = c.resident(i, "master", memory.Optimizer, size(f.shardOptim), row.Optim.Tier)
		}
		for _, st := range c.o.States {
			f.states = append(f.states, c.resident(i, st, memory.Optimizer, size(f.shardOptim), row.Optim.Tier))
		}
	}
}

func (c *compiler) resident(flat int, what string, k memory.Kind, n int, tier string) int {
	d := device.F32
	switch what {
	case "parameter":
		d = c.o.Precision.Compute
	case "gradient at rest":
		d = c.o.Precision.Reduce
	}
	c.bufs = append(c.bufs, Buf{Name: c.flats[flat].Name + " " + what, Kind: k, DType: d, Len: n, Resident: true, Flat: flat, State: what, Tier: tier})
	return len(c.bufs) - 1
}

// buf makes a transient buffer; one without elements is none.
func (c *compiler) buf(name string, k memory.Kind, d device.DType, n int) int {
	if n == 0 {
		return none
	}
	c.bufs = append(c.bufs, Buf{Name: name, Kind: k, DType: d, Len: n})
	return len(c.bufs) - 1
}
