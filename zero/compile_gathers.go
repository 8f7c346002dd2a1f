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
			if !reads[k] || c.flats[f].fullLen == 0 {
				continue
			}
			op.Args.P[k] = c.flats[f].param
			if !c.flats[f].gatherParam {
				continue
			}
			b, ok := live[f]
			if !ok {
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
	return ahead(ops, c.o.Prefetch, mover{
		moves: func(o *Op) (piece, bool) { return piece{at: o.Flat}, o.Verb == Gather && o.Note == "" },
		stops: func(o *Op) (piece, bool) { return piece{at: o.Flat}, o.Verb == Reshard },
		paces: (*Op).compute,
	})
}

// piece is what an op moves: of a flat or a buffer, elements part, all of it where that is zero.
type piece struct {
	at   int
	part shard.Range
}

func (p piece) meets(o piece) bool {
	return p.at == o.at && (p.part == o.part || p.part == (shard.Range{}) || o.part == (shard.Range{}))
}

// mover says which ops move ahead, which ops on the same elements they never pass, and which ops count.
type mover struct {
	moves, stops func(*Op) (p piece, ok bool)
	paces        func(*Op) bool
}

// ahead moves ops n paces ahead in the list, in their order.
func ahead(ops []Op, n int, m mover) []Op {
	if n == 0 {
		return ops
	}
	var out []Op
	var paces []int // index in out of each op that counts
	floor := 0      // none goes before the one in front of it
	for _, op := range ops {
		if p, ok := m.moves(&op); ok {
			at := len(out)
			if k := max(len(paces)-n, 0); k < len(paces) {
				at = paces[k]
			}
			at = max(at, floor)
			for i := len(out) - 1; i >= at; i-- {
				if q, ok := m.stops(&out[i]); ok && p.meets(q) {
					at = i + 1
				}
			}
			out = append(out, Op{})
			copy(out[at+1:], out[at:])
			out[at] = op
			for i := len(paces) - 1; i >= 0 && paces[i] >= at; i-- {
				paces[i]++
			}
			floor = at + 1
			continue
		}
		if m.paces(&op) {
			paces = append(paces, len(out))
		}
		out = append(out, op)
	}
	return out
}
