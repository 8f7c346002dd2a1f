package zero

import (
	"zeroshard/memory"
	"zeroshard/shard"
)

// values lists the flats whose values an op reads, by the unit's list of flats: false where it does not.
func (c *compiler) values(op *Op) []bool {
	u := &c.units[op.Unit]
	if op.Verb == Backward {
		return u.back
	}
	all := make([]bool, len(u.flats))
	for i := range all {
		all[i] = true
	}
	return all
}

// gathers gives every compute op the values that it reads. A sharded flat is gathered before its use and dropped after it,
// unless the very next compute op reads it too (KeepLast: or the one after that).
func (c *compiler) gathers(ops []Op) []Op {
	next := c.nextReads(ops)
	live := map[int]int{} // flat → gathered buffer
	var out []Op
	for i := range ops {
		op := ops[i]
		if !op.compute() {
			out = append(out, op)
			continue
		}
		u := &c.units[op.Unit]
		reads := c.values(&op)
		op.Args.P = make([]int, len(u.flats))
		for k, f := range u.flats {
			op.Args.P[k] = none
			if !reads[k] {
				continue
			}
			op.Args.P[k] = c.flats[f].param
			if !c.flats[f].gatherParam {
				continue
			}
			b, ok := live[f]
			if !ok && c.flats[f].fullLen > 0 {
				gather := c.gather(f)
				b = gather.Args.Dst.Buf
				live[f] = b
				out = append(out, gather)
			}
			op.Args.P[k] = b
		}
		out = append(out, op)
		for f := range c.flats {
			if b, ok := live[f]; ok && !next[i][f] {
				out = append(out, c.reshard(f, b))
				delete(live, f)
			}
		}
	}
	return out
}

func (c *compiler) gather(f int) Op {
	op := newOp(Gather, Comm)
	op.Flat, op.Axis = f, shard.Shards
	op.Args.Src = Ref{Buf: c.flats[f].param}
	op.Args.Dst = Ref{Buf: c.buf(c.flats[f].Name+" gathered", memory.Gathered, c.o.Precision.Compute, c.flats[f].fullLen)}
	return op
}

func (c *compiler) reshard(f, buf int) Op {
	op := newOp(Reshard, Host)
	op.Flat = f
	op.Args.Src = Ref{Buf: buf}
	return op
}

// nextReads says for each op which flats one of the next compute ops reads: the next one, or two with KeepLast.
func (c *compiler) nextReads(ops []Op) []map[int]bool {
	look := 1
	if c.o.KeepLast {
		look = 2
	}
	next := make([]map[int]bool, len(ops))
	var window []map[int]bool // what the coming compute ops read, nearest first
	for i := len(ops) - 1; i >= 0; i-- {
		if !ops[i].compute() {
			continue
		}
		next[i] = map[int]bool{}
		for _, m := range window {
			for f := range m {
				next[i][f] = true
			}
		}
		mine := map[int]bool{}
		for k, reads := range c.values(&ops[i]) {
			if reads {
				mine[c.units[ops[i].Unit].flats[k]] = true
			}
		}
		window = append([]map[int]bool{mine}, window[:min(len(window), look-1)]...)
	}
	return next
}

// prefetch moves each gather ahead of the Prefetch compute ops before its use. It never adds or removes one, keeps their
// order, and never moves one before the last reshard of the same flat.
func (c *compiler) prefetch(ops []Op) []Op {
	if c.o.Prefetch == 0 {
		return ops
	}
	var out []Op
	var starts []int // index in out of each compute op
	floor := 0       // no gather goes before the gather in front of it
	dropped := map[int]int{}
	for _, op := range ops {
		switch {
		case op.Verb == Gather:
			at := len(out)
			if n := max(len(starts)-c.o.Prefetch, 0); n < len(starts) {
				at = starts[n]
			}
			at = max(at, floor, dropped[op.Flat])
			out = append(out, Op{})
			copy(out[at+1:], out[at:])
			out[at] = op
			for i := len(starts) - 1; i >= 0 && starts[i] >= at; i-- {
				starts[i]++
			}
			for f := range dropped {
				if dropped[f] > at {
					dropped[f]++
				}
			}
			floor = at + 1
		default:
			if op.compute() {
				starts = append(starts, len(out))
			}
			if op.Verb == Reshard {
				dropped[op.Flat] = len(out) + 1
			}
			out = append(out, op)
		}
	}
	return out
}
