package zero

import (
	"fmt"
	"math/bits"

	"zeroshard/collectives"
	"zeroshard/device"
	"zeroshard/memory"
	"zeroshard/shard"
)

// reduces gives every gradient a buffer, folds the leaves of a window on their rank, and reduces a window as soon as its last leaf
// is done.
//
// A rank folds its window's leaves like a binary counter: leaf i is written to stack position popcount(i), then merged with the
// position below once for each trailing one bit of i. With a window of one leaf there is no stack. Where gradients rest whole,
// position 0 is the place where they rest.
func (c *compiler) reduces(ops []Op) []Op {
	r := &reducer{c: c, carry: make([][]int, len(c.flats)), rests: map[[2]int]int{}}
	for w := range c.win.Count {
		f, err := collectives.NewFold(c.mesh.Size(shard.Shards), c.win.Leaves, c.win.Size, w)
		if err != nil {
			c.err = err
			return nil
		}
		r.folds = append(r.folds, f)
	}
	last := lastWrites(c, ops)
	r.stack = make([][]int, len(c.flats))
	open := make([]bool, len(c.flats)) // this leaf's gradient of the flat is begun
	for i := range ops {
		op := ops[i]
		if op.Verb != LossGrad && op.Verb != Backward {
			r.out = append(r.out, op)
			continue
		}
		u := &c.units[op.Unit]
		op.Args.G = make([]int, len(u.flats))
		for k, f := range u.flats {
			op.Args.G[k] = none
			if !c.flats[f].trainable() || c.flats[f].fullLen == 0 {
				continue
			}
			if !open[f] {
				open[f] = true
				r.begin(f, &op)
			}
			op.Args.G[k] = r.stack[f][bits.OnesCount(uint(op.Slot))]
		}
		r.out = append(r.out, op)
		for _, f := range u.flats {
			if open[f] && last[leafFlat{op.Win, op.Slot, f}] == i {
				open[f] = false
				r.finish(f, op.Win, op.Slot)
			}
		}
	}
	return r.out
}

type leafFlat struct{ win, slot, flat int }

// lastWrites finds the op that completes each leaf's gradient of each flat.
func lastWrites(c *compiler, ops []Op) map[leafFlat]int {
	last := map[leafFlat]int{}
	for i := range ops {
		if op := &ops[i]; op.Verb == LossGrad || op.Verb == Backward {
			for _, f := range c.units[op.Unit].flats {
				last[leafFlat{op.Win, op.Slot, f}] = i
			}
		}
	}
	return last
}

type reducer struct {
	c     *compiler
	out   []Op
	folds []*collectives.Fold // by window
	stack [][]int             // by flat, by stack position: buffer
	carry [][]int             // by flat: slots of the owner's carry
	rests map[[2]int]int      // by flat and slot: those that rest in a tier
}

func (r *reducer) add(op Op) { r.out = append(r.out, op) }

// begin makes the buffer of this leaf's gradient and clears what the units will not write.
func (r *reducer) begin(flat int, op *Op) {
	c, f := r.c, &r.c.flats[flat]
	pos := bits.OnesCount(uint(op.Slot))
	buf := f.grad
	if pos > 0 || f.shardGrad || c.o.Precision.Reduce != device.F32 {
		buf = c.buf(fmt.Sprintf("%s gradient mb%d", f.Name, op.Win*c.win.Size+op.Slot), memory.Gradient, device.F32, f.fullLen)
	}
	r.stack[flat] = append(r.stack[flat][:min(pos, len(r.stack[flat]))], buf)
	if note := f.clearNote(); note != "" {
		clr := newOp(Clear, Compute)
		clr.Flat, clr.Win, clr.Slot, clr.Note = flat, op.Win, op.Slot, note
		clr.Args.G = []int{buf}
		r.add(clr)
	}
}

// clearNote says what of a full gradient must be cleared before units write it: all, the gaps between parameters, or nothing.
func (f *flatInfo) clearNote() string {
	switch {
	case f.clearAll:
		return "all"
	case gaps(f.Flat, f.fullLen) != nil:
		return "gaps"
	}
	return ""
}

// gaps lists the ranges of a full buffer in which no parameter lies.
func gaps(f *shard.Flat, full int) (out []shard.Range) {
	at := 0
	for _, s := range f.Segs {
		if s.Range.Lo > at {
			out = append(out, shard.Range{Lo: at, Hi: s.Range.Lo})
		}
		at = max(at, s.Range.Hi)
	}
	if full > at {
		out = append(out, shard.Range{Lo: at, Hi: full})
	}
	return out
}

// finish merges the finished leaf into its window and reduces the window after its last leaf.
func (r *reducer) finish(flat, win, slot int) {
	for range bits.TrailingZeros(^uint(slot)) {
		stack := r.stack[flat]
		top := len(stack) - 1
		op := newOp(Merge, Compute)
		op.Flat, op.Win, op.Slot, op.Depth = flat, win, slot, top
		op.Args.Ins = []Ref{{Buf: stack[top-1]}}
		op.Args.Src, op.Args.Dst = Ref{Buf: stack[top]}, Ref{Buf: stack[top-1]}
		r.add(op)
		r.stack[flat] = stack[:top]
	}
	if slot == r.c.win.Size-1 {
		r.reduce(flat, win)
	}
}

// reduce sends a window: the owner folds its parts into the carry. After the last window the carry is the sum, at rest.
func (r *reducer) reduce(flat, win int) {
	c, f := r.c, &r.c.flats[flat]
	src := r.stack[flat][0]
	r.stack[flat] = r.stack[flat][:0]
	if c.o.Precision.Reduce != device.F32 {
		src = r.cast(flat, win, src)
	}
	fold := r.folds[win]
	op := newOp(Reduce, Comm)
	op.Flat, op.Win, op.Axis = flat, win, shard.Shards
	op.Args.Src, op.Args.Fold = Ref{Buf: src}, fold
	for _, b := range r.carry[flat] {
		op.Args.Ins = append(op.Args.Ins, Ref{Buf: b})
	}
	final := win == c.win.Count-1
	if final {
		op.Args.Outs = []Ref{f.rest()}
	} else {
		for i := range fold.Out {
			op.Args.Outs = append(op.Args.Outs, Ref{Buf: r.slot(flat, i)})
		}
		r.carry[flat] = r.carry[flat][:fold.Out]
	}
	if c.reducesOver(flat) {
		r.add(op)
	}
	if final {
		r.complete(flat)
	}
}

// reducesOver says that a flat's windows are reduced: on one rank with one window, a gradient that rests whole is its own sum.
func (r *resolved) reducesOver(flat int) bool {
	return r.mesh.Size(shard.Shards) > 1 || r.win.Count > 1 || r.flats[flat].shardGrad
}

// slot is the buffer of the carry's i-th node. An fp32 gradient shard at rest is its own first slot.
func (r *reducer) slot(flat, i int) int {
	f := &r.c.flats[flat]
	if i == len(r.carry[flat]) {
		b := f.grad
		if i > 0 || !f.shardGrad || r.c.o.Precision.Reduce != device.F32 {
			b = r.carryBuf(flat, i)
		}
		r.carry[flat] = append(r.carry[flat], b)
	}
	return r.carry[flat][i]
}

// carryBuf makes a slot: where the gradient rests in a tier, so do the nodes of its carry, each slot in one place for the whole step.
func (r *reducer) carryBuf(flat, i int) int {
	f := &r.c.flats[flat]
	what := fmt.Sprintf("carry %d", i)
	if tier := r.c.bufs[f.grad].Tier; tier != "" {
		at := [2]int{flat, i}
		if _, ok := r.rests[at]; !ok {
			r.rests[at] = r.c.resident(flat, what, memory.Staging, f.shardLen, tier)
		}
		return r.rests[at]
	}
	return r.c.buf(f.Name+" "+what, memory.Staging, device.F32, f.shardLen)
}

// cast rounds a leaf's gradient to the dtype in which it is sent: in its place of rest, or in a buffer of its own.
func (r *reducer) cast(flat, win, src int) int {
	c, f := r.c, &r.c.flats[flat]
	dst := f.grad
	if f.shardGrad {
		dst = c.buf(f.Name+" gradient to send", memory.Staging, c.o.Precision.Reduce, f.fullLen)
	}
	op := newOp(Cast, Compute)
	op.Flat, op.Win, op.Slot = flat, win, c.win.Size-1
	op.Args.Src, op.Args.Dst = Ref{Buf: src}, Ref{Buf: dst}
	r.add(op)
	return dst
}

// rest is this rank's shard of the reduced gradient, where it rests.
func (f *flatInfo) rest() Ref {
	if f.shardGrad {
		return Ref{Buf: f.grad}
	}
	return Ref{Buf: f.grad, Cut: Mine}
}

// complete folds the shards across replicas and, where the optimizer is replicated, gathers the reduced gradient.
func (r *reducer) complete(flat int) {
	c, f := r.c, &r.c.flats[flat]
	if n := c.mesh.Size(shard.Replicate); n > 1 {
		fold, err := collectives.ReplicaFold(n)
		if err != nil {
			c.err = err
			return
		}
		sub := Ref{Buf: f.grad, Cut: Sub}
		red := newOp(Reduce, Comm)
		red.Flat, red.Axis = flat, shard.Replicate
		red.Args.Src, red.Args.Outs, red.Args.Fold = f.rest(), []Ref{sub}, fold
		r.add(red)
		r.add(c.publish(flat, "gradient", shard.Replicate, sub, f.rest()))
	}
	if !f.shardOptim && c.mesh.Size(shard.Shards) > 1 {
		r.add(c.publish(flat, "gradient", shard.Shards, Ref{Buf: f.grad, Cut: Mine}, Ref{Buf: f.grad}))
	}
}

// publish is a gather in place at the end of a step.
func (c *compiler) publish(flat int, what string, axis shard.Axis, src, dst Ref) Op {
	op := newOp(Gather, Comm)
	op.Flat, op.Axis, op.Note = flat, axis, what
	op.Args.Src, op.Args.Dst = src, dst
	return op
}
