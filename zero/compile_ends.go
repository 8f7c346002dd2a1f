package zero

import (
	"zeroshard/device"
	"zeroshard/memory"
	"zeroshard/models"
	"zeroshard/shard"
)

// ends adds what closes a pass: the scalars of all ranks, in training the updates that they control, and the report to the host.
func (c *compiler) ends(ops []Op) []Op {
	report := newOp(Report, Copy)
	if c.o.Mode.Scores() {
		for i := range ops {
			if ops[i].Verb == Forward && ops[i].Unit == len(c.units)-1 {
				report.Args.Src = Ref{Buf: ops[i].Args.Out}
			}
		}
		report.Note = "logits"
		return append(ops, report)
	}
	scalars := ops[0].Args.Scalars
	all := c.buf("scalars of all ranks", memory.Communication, device.U64, c.mesh.World()*c.bufs[scalars].Len)
	exchange := newOp(Losses, Comm)
	exchange.Axis = shard.World
	exchange.Args.Src, exchange.Args.Dst = Ref{Buf: scalars}, Ref{Buf: all}
	report.Args.Src, report.Note = Ref{Buf: all}, "scalars"
	if c.o.Mode == models.Train {
		ops = append(ops, c.squares(scalars)...)
		exchange.Verb = Norm
		exchange.Args.Out = c.buf("control", memory.Communication, device.F32, 2)
		ops = append(append(ops, exchange), c.updates(exchange.Args.Out)...)
		return append(ops, report)
	}
	return append(ops, exchange, report)
}

// squares adds up the squares of this rank's gradient shards, every element of the model once over the axis of shards.
func (c *compiler) squares(scalars int) (ops []Op) {
	for i := range c.flats {
		if f := &c.flats[i]; f.trainable() && f.fullLen > 0 {
			op := newOp(Square, Compute)
			op.Flat, op.Args.Scalars, op.Args.Src = i, scalars, f.rest()
			ops = append(ops, op)
		}
	}
	return ops
}

// updates runs the optimizer over this rank's slice of every flat; values that rest whole are published.
func (c *compiler) updates(control int) []Op {
	var ops []Op
	for i := range c.flats {
		f := &c.flats[i]
		if !f.trainable() || f.fullLen == 0 {
			continue
		}
		mine := func(buf int, sharded bool) Ref {
			if f.shardOptim && !sharded {
				return Ref{Buf: buf, Cut: Mine}
			}
			return Ref{Buf: buf}
		}
		op := newOp(Update, Compute)
		op.Flat, op.Note = i, "whole"
		if f.shardOptim {
			op.Note = "shard"
		}
		op.Args.In = control
		op.Args.Src = mine(f.grad, f.shardGrad)
		op.Args.Ins = []Ref{mine(f.master, f.gatherParam || f.master != f.param)}
		for _, st := range f.states {
			op.Args.Ins = append(op.Args.Ins, Ref{Buf: st})
		}
		if f.master != f.param {
			op.Args.Outs = []Ref{mine(f.param, f.gatherParam)}
		}
		ops = append(ops, op)
		if f.shardOptim && !f.gatherParam && c.mesh.Size(shard.Shards) > 1 {
			ops = append(ops, c.publish(i, "updated", shard.Shards, Ref{Buf: f.param, Cut: Mine}, Ref{Buf: f.param}))
		}
	}
	return ops
}
