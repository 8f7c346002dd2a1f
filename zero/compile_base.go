package zero

import (
	"fmt"

	"zeroshard/device"
	"zeroshard/internal/exact"
	"zeroshard/memory"
	"zeroshard/models"
)

// base lists the computation alone: for each leaf of a rank, in the order of windows, feed it, run the units forward and, in
// training, backward. It knows nothing of shards.
func (c *compiler) base() []Op {
	var ops []Op
	scalars := none
	if !c.o.Mode.Scores() {
		scalars = c.buf("scalars", memory.Communication, device.U64, scalarWords(c.win.Slots()))
		op := newOp(Clear, Compute)
		op.Args.Scalars, op.Note = scalars, "scalars"
		ops = append(ops, op)
	}
	for w := range c.win.Count {
		for slot := range c.win.Size {
			b := &leafBuilder{c: c, win: w, slot: slot, scalars: scalars}
			b.feed()
			b.forward()
			if c.o.Mode == models.Train {
				b.backward()
			}
			ops = append(ops, b.ops...)
		}
	}
	return ops
}

// scalarWords is the size of what a rank reports: (loss sum, valid tokens) of each leaf, and the exact sum of squares.
func scalarWords(leaves int) int { return 2*leaves + exact.Words }

// leafBuilder lists the ops of one leaf.
type leafBuilder struct {
	c               *compiler
	win, slot       int
	ops             []Op
	tokens, targets int
	scalars, spans  int
	out, saved      []int // by unit
}

func (b *leafBuilder) name(what, unit string) string {
	return fmt.Sprintf("%s %s mb%d", unit, what, b.win*b.c.win.Size+b.slot)
}

func (b *leafBuilder) op(v Verb, l Lane) *Op {
	op := newOp(v, l)
	op.Win, op.Slot = b.win, b.slot
	b.ops = append(b.ops, op)
	return &b.ops[len(b.ops)-1]
}

func (b *leafBuilder) feed() {
	rows := b.c.o.Shape.Rows()
	b.tokens = b.c.buf(b.name("tokens", "feed"), memory.Activation, device.I32, rows)
	b.targets = b.c.buf(b.name("targets", "feed"), memory.Activation, device.I32, rows)
	b.spans = none
	if b.c.o.Mode == models.Decode {
		b.spans = b.c.buf(b.name("spans", "feed"), memory.Activation, device.I32, 2*b.c.o.Shape.Batch)
	}
	op := b.op(Feed, Copy)
	op.Args.Tokens, op.Args.Targets, op.Args.Spans = b.tokens, b.targets, b.spans
}

// unit adds an op of unit k with what all its ops have in common.
func (b *leafBuilder) unit(v Verb, k, work int) *Op {
	op := b.op(v, Compute)
	u := &b.c.units[k]
	op.Unit = k
	op.Args.Add = u.add
	op.Args.Tokens, op.Args.Spans, op.Args.Cache = b.tokens, b.spans, b.c.cache(u)
	if k > 0 {
		op.Args.In = b.out[k-1]
	}
	op.Args.Work = b.c.buf(b.name(v.String()+" work", u.Name()), memory.Workspace, b.c.o.Precision.Compute, work)
	return op
}

func (b *leafBuilder) act(what string, k, n int) int {
	return b.c.buf(b.name(what, b.c.units[k].Name()), memory.Activation, b.c.o.Precision.Compute, n)
}

// cache makes the buffer of what a unit keeps of texts, if it does.
func (c *compiler) cache(u *unitInfo) int {
	i := c.buf(u.Name()+" cache", memory.Cache, c.o.Precision.Compute, u.sizes.Cache)
	if i != none {
		c.bufs[i].Keep = true
	}
	return i
}

// forward lists the units' forwards. A recomputed unit's saved values die with the op.
func (b *leafBuilder) forward() {
	units := b.c.units
	last := len(units) - 1
	b.out, b.saved = make([]int, last+1), make([]int, last+1)
	for k := range units {
		u := &units[k]
		verb := Forward
		if k == last && b.c.o.Mode == models.Train {
			verb = LossGrad
		}
		op := b.unit(verb, k, u.sizes.Work)
		b.saved[k] = b.act("saved", k, u.sizes.Saved)
		b.out[k] = none
		if k < last || b.c.o.Mode.Scores() {
			b.out[k] = b.act("out", k, u.sizes.Out)
		}
		op.Args.Saved, op.Args.Out = b.saved[k], b.out[k]
		if k == last {
			op.Args.Targets, op.Args.Scalars = b.targets, b.scalars
		}
		if b.c.o.Mode == models.Train && k < last {
			op.Note = "save=all"
			if u.recompute {
				op.Note = "save=in"
			} else if u.sizes.Saved == 0 {
				op.Note = ""
			}
		}
	}
}

// backward lists the last unit's input gradient, then the units' backwards with their recomputes, last to first.
func (b *leafBuilder) backward() {
	last := len(b.c.units) - 1
	dout := none
	if last > 0 {
		dout = b.act("gradient of its input", last, b.c.units[last-1].sizes.Out)
		b.ops[len(b.ops)-1].Args.DIn = dout
	}
	for k := last - 1; k >= 0; k-- {
		u := &b.c.units[k]
		if u.recompute {
			op := b.unit(Recompute, k, u.sizes.Work)
			b.saved[k] = b.act("saved again", k, u.sizes.Saved)
			op.Args.Saved = b.saved[k]
		}
		op := b.unit(Backward, k, u.sizes.BackWork)
		op.Args.Saved, op.Args.DOut = b.saved[k], dout
		if k > 0 {
			op.Args.DIn = b.act("gradient of its input", k, b.c.units[k-1].sizes.Out)
			dout = op.Args.DIn
		}
	}
}
