package zero

import (
	"slices"

	"zeroshard/collectives"
	"zeroshard/device"
	"zeroshard/internal/exact"
	"zeroshard/internal/invariants"
	"zeroshard/models"
	"zeroshard/optim"
	"zeroshard/shard"
)

func nothing() error { return nil }

// build makes the task of op i: everything it touches is resolved here, once.
func (x *exec) build(i int, t *task) func() error {
	op := &x.p.Ops[i]
	slot := op.Win*x.p.Windows.Size + op.Slot
	v, s := x.e.cfg.Vector, x.e.streams[op.Lane]
	dst, src := x.buffer(op.Args.Dst), x.buffer(op.Args.Src)
	switch op.Verb {
	case Feed:
		t.feed, t.src = slot, make([]device.Buffer, 3)
		t.dst = []device.Buffer{x.buffer(Ref{Buf: op.Args.Tokens}), x.buffer(Ref{Buf: op.Args.Targets}), x.buffer(Ref{Buf: op.Args.Spans})}
		return nothing
	case Report:
		return x.report(t, src)
	case Gather:
		g := x.e.cfg.Groups[op.Axis]
		if x.p.Options.Mode != models.Train && !slices.ContainsFunc(x.leaves, func(l int) bool { return l != none }) {
			dst = device.Buffer{} // nothing is computed here: the rank only serves the others
		}
		return func() error { return g.AllGather(x.run.ctx, s, dst, src) }
	case Reduce:
		return x.reduce(op, s)
	case Norm, Losses:
		return x.exchange(op, s)
	case Forward, LossGrad, Backward, Recompute:
		return x.unit(op, slot)
	case Clear:
		return x.clear(op)
	case Merge:
		if !x.merges(op) {
			return nothing
		}
		return func() error { v.Add(s, dst, dst, src); return nil }
	case Cast:
		return func() error { v.Cast(s, dst, src); return nil }
	case Square:
		return x.square(op)
	case Update:
		return x.update(op)
	case Fetch, Evict:
		return x.move(op, s)
	}
	invariants.Broken("zero: no task for %v", op.Verb)
	return nothing
}

// unit makes the call of a forward, recompute, loss or backward.
func (x *exec) unit(op *Op, slot int) func() error {
	u := &x.p.model.units[op.Unit]
	leaf := x.leaves[slot]
	if leaf == none {
		return nothing
	}
	a := &op.Args
	at := func(b int) device.Buffer { return x.buffer(Ref{Buf: b}) }
	c := &models.Call{S: x.e.streams[Compute], K: x.e.cfg.Net, Shape: x.p.Options.Shape, Mode: x.p.Options.Mode, Add: a.Add,
		In: at(a.In), Out: at(a.Out), DIn: at(a.DIn), DOut: at(a.DOut), Saved: at(a.Saved), Work: at(a.Work),
		Tokens: at(a.Tokens), Targets: at(a.Targets), Spans: at(a.Spans), Cache: at(a.Cache)}
	c.P, c.G = x.params(u, a.P), x.params(u, a.G)
	if a.Scalars != none {
		b := at(a.Scalars)
		c.Loss = device.Buffer{Mem: b.Mem, Off: b.Off + int64(slot)*16, Len: 2, DType: device.F64}
	}
	key, unit := x.e.cfg.Key, uint64(op.Unit)
	call := u.Forward
	if op.Verb == Backward {
		call = u.Backward
	}
	return func() error {
		c.Key = key.Sub(uint64(x.run.step)).Sub(uint64(leaf)).Sub(unit)
		return call(c)
	}
}

// params cuts full flats into the parameters of a unit, in the order of its specs: empty where a flat is absent.
func (x *exec) params(u *unitInfo, flats []int) []device.Buffer {
	forward, _ := u.Reads()
	var out []device.Buffer
	for _, spec := range forward {
		parts := x.p.model.layout.BySpec(spec)
		for _, name := range x.p.model.specs[spec] {
			var view device.Buffer
			for _, f := range parts {
				k := indexOf(u.flats, f)
				if flats == nil || flats[k] == none {
					continue
				}
				for _, seg := range x.p.model.flats[f].Segs {
					if seg.Param.Name == name {
						view = x.buffer(Ref{Buf: flats[k]}).Slice(seg.Range.Lo, seg.Range.Hi)
					}
				}
			}
			out = append(out, view)
		}
	}
	return out
}

func indexOf(list []int, v int) int {
	for i, x := range list {
		if x == v {
			return i
		}
	}
	return none
}

func (x *exec) clear(op *Op) func() error {
	v, s := x.e.cfg.Vector, x.e.streams[Compute]
	var parts []device.Buffer
	if op.Args.Scalars != none {
		b := x.buffer(Ref{Buf: op.Args.Scalars})
		b.Len, b.DType = 2*b.Len, device.F32
		parts = append(parts, b)
	} else {
		f := &x.p.model.flats[op.Flat]
		full := x.buffer(Ref{Buf: op.Args.G[0]})
		holes := gaps(f.Flat, f.fullLen)
		if f.clearAll {
			holes = []shard.Range{{Lo: 0, Hi: f.fullLen}}
		}
		for _, r := range holes {
			parts = append(parts, full.Slice(r.Lo, r.Hi))
		}
	}
	return func() error {
		for _, p := range parts {
			v.Zero(s, p)
		}
		return nil
	}
}

// merges says whether this rank has both nodes of a merge. In the last window a rank may have fewer leaves: there it plays the
// list of merges against the height of its own stack, which leaves the node of exactly its leaves.
func (x *exec) merges(op *Op) bool {
	depth := 0
	first := op.Win * x.p.Windows.Size
	for slot := 0; slot <= op.Slot; slot++ {
		if x.leaves[first+slot] != none {
			depth++
		}
		for d := top(slot); d > top(slot)-ones(slot); d-- {
			if slot == op.Slot && d == op.Depth {
				return depth-1 == d
			}
			if depth-1 == d {
				depth--
			}
		}
	}
	return false
}

func (x *exec) reduce(op *Op, s device.Stream) func() error {
	g := x.e.cfg.Groups[op.Axis]
	r := collectives.Reduction{Fold: op.Args.Fold}
	if op.Args.Fold.Present[g.Rank()] {
		r.Src = x.buffer(op.Args.Src)
	}
	for _, b := range op.Args.Outs {
		r.Out = append(r.Out, x.buffer(b))
	}
	for _, b := range op.Args.Ins {
		r.In = append(r.In, x.buffer(b))
	}
	return func() error { return g.ReduceScatter(x.run.ctx, s, r) }
}

// pieces calls f for the parts of parameters in this rank's slice of a flat: global index, segment, and the part's place in the slice.
func (x *exec) pieces(flat int, sharded bool, f func(seg shard.Segment, lo, hi int)) {
	info := &x.p.model.flats[flat]
	r := shard.Range{Lo: 0, Hi: info.Len}
	if sharded {
		r = x.p.model.layout.Shard(flat, x.p.Mesh.Coord(x.e.cfg.Rank, shard.Shards), x.p.Mesh)
	}
	for seg := range info.Pieces(r) {
		f(seg, seg.Range.Lo-r.Lo, seg.Range.Hi-r.Lo)
	}
}

func (x *exec) square(op *Op) func() error {
	v, s := x.e.cfg.Vector, x.e.streams[Compute]
	acc := x.buffer(Ref{Buf: op.Args.Scalars})
	acc = acc.Slice(acc.Len-exact.Words, acc.Len)
	g := x.buffer(op.Args.Src)
	type part struct {
		g   device.Buffer
		tag uint32
	}
	var parts []part
	x.pieces(op.Flat, true, func(seg shard.Segment, lo, hi int) {
		parts = append(parts, part{g.Slice(lo, hi), x.p.tag(seg.Param.Name)})
	})
	return func() error {
		for i := range parts {
			v.SumSquares(s, acc, parts[i].g, parts[i].tag)
		}
		return nil
	}
}

func (x *exec) update(op *Op) func() error {
	v, s := x.e.cfg.Vector, x.e.streams[Compute]
	bufs := make([]device.Buffer, len(op.Args.Ins))
	for i, r := range op.Args.Ins {
		bufs[i] = x.buffer(r)
	}
	grad, control := x.buffer(op.Args.Src), x.buffer(Ref{Buf: op.Args.In})
	var parts []optim.Slice
	x.pieces(op.Flat, x.p.model.flats[op.Flat].shardOptim, func(seg shard.Segment, lo, hi int) {
		if op.Part != (shard.Range{}) { // a sub-group: the operands start at its first element
			if lo, hi = max(lo, op.Part.Lo)-op.Part.Lo, min(hi, op.Part.Hi)-op.Part.Lo; lo >= hi {
				return
			}
		}
		p := optim.Slice{P: bufs[0].Slice(lo, hi), G: grad.Slice(lo, hi), Control: control, Decay: !seg.Param.NoDecay}
		for _, st := range bufs[1:] {
			p.States = append(p.States, st.Slice(lo, hi))
		}
		parts = append(parts, p)
	})
	o := x.e.cfg.Optimizer
	return func() error {
		for i := range parts {
			if err := o.Update(s, v, x.run.hyper, parts[i]); err != nil {
				return err
			}
		}
		return nil
	}
}
