package zero

import (
	"fmt"
	"slices"

	"zeroshard/memory"
	"zeroshard/shard"
)

// tiers gives every op that uses state in a tier a device buffer in its place: fetched before the op where it reads, evicted after
// it where it wrote. Updates are cut into sub-groups first, so that the optimizer streams through a few buffers of bounded size.
// Fetches then move ahead like gathers, so that a lane brings the next while this one is used.
func (c *compiler) tiers(ops []Op) []Op {
	if !c.tiered() {
		return ops
	}
	t := &tierer{c: c, out: make([]Op, 0, 4*len(ops)), here: map[Ref]*visit{}}
	ops = c.subgroups(ops)
	for i := range ops {
		t.op(ops[i])
		t.release(ops, i+1)
	}
	return ahead(t.out, c.o.Prefetch, mover{
		moves: func(o *Op) (piece, bool) { return piece{o.Args.Src.Buf, o.Args.Src.Part}, o.Verb == Fetch },
		stops: func(o *Op) (piece, bool) { return piece{o.Args.Dst.Buf, o.Args.Dst.Part}, o.Verb == Evict },
		paces: func(o *Op) bool { return o.compute() || o.Verb == Square || o.Verb == Update },
	})
}

func (c *compiler) tiered() bool {
	for i := range c.bufs {
		if c.bufs[i].Tier != "" {
			return true
		}
	}
	return false
}

// subgroups cuts updates of tiered state into parts of at most SubGroup elements.
func (c *compiler) subgroups(ops []Op) (out []Op) {
	group := c.subGroup()
	for _, op := range ops {
		tiered := c.bufs[max(op.Args.Src.Buf, 0)].Tier != ""
		for _, r := range op.Args.Ins {
			tiered = tiered || c.bufs[r.Buf].Tier != ""
		}
		if op.Verb != Update || !tiered {
			out = append(out, op)
			continue
		}
		n := c.flats[op.Flat].shardLen
		for lo := 0; lo < n; lo += group {
			part := op
			part.Part = shard.Range{Lo: lo, Hi: min(lo+group, n)}
			cut := func(r Ref) Ref { r.Part = part.Part; return r }
			part.Args.Src = cut(op.Args.Src)
			part.Args.Ins, part.Args.Outs = mapRefs(op.Args.Ins, cut), mapRefs(op.Args.Outs, cut)
			part.Note = fmt.Sprintf("[%d,%d)", part.Part.Lo, part.Part.Hi)
			out = append(out, part)
		}
	}
	return out
}

func mapRefs(refs []Ref, f func(Ref) Ref) []Ref {
	out := make([]Ref, len(refs))
	for i, r := range refs {
		out[i] = f(r)
	}
	return out
}

// visit is tiered state that is on the device for a while.
type visit struct {
	buf   int // on the device
	dirty bool
	flat  int
}

type tierer struct {
	c    *compiler
	out  []Op
	here map[Ref]*visit // by tier buffer and part
	keys []Ref          // of here, in the order in which they came
}

// op appends an op with its tiered operands replaced.
func (t *tierer) op(op Op) {
	if op.Verb == Gather && t.tier(op.Args.Src) != "" && t.c.mesh.Size(op.Axis) == 1 {
		t.out = append(t.out, t.fetch(op.Flat, op.Args.Src, op.Args.Dst)) // nobody to gather from
		return
	}
	a := &op.Args
	a.Src = t.use(op.Flat, a.Src, true, false)
	a.Ins = t.uses(op.Flat, a.Ins, true, op.Verb == Update) // the optimizer updates in place
	a.Dst = t.use(op.Flat, a.Dst, false, true)
	a.Outs = t.uses(op.Flat, a.Outs, false, true)
	t.out = append(t.out, op)
}

// uses is use for a list; a list without tiered state stays as it is.
func (t *tierer) uses(flat int, refs []Ref, read, write bool) []Ref {
	for _, r := range refs {
		if t.tier(r) != "" {
			return mapRefs(refs, func(r Ref) Ref { return t.use(flat, r, read, write) })
		}
	}
	return refs
}

func (t *tierer) tier(r Ref) string {
	if r.Buf == none {
		return ""
	}
	return t.c.bufs[r.Buf].Tier
}

// use returns what an op uses on the device instead of r, fetching it if its values matter and are not there yet.
func (t *tierer) use(flat int, r Ref, read, write bool) Ref {
	if t.tier(r) == "" {
		return r
	}
	key := Ref{Buf: r.Buf, Part: r.Part}
	v := t.here[key]
	if v == nil {
		b := t.c.bufs[r.Buf]
		n := b.Len
		if r.Part != (shard.Range{}) {
			n = r.Part.Len()
		}
		v = &visit{buf: t.c.buf(b.Name+" here", memory.Staging, b.DType, n), flat: flat}
		t.c.bufs[v.buf].Flat = b.Flat
		t.here[key] = v
		t.keys = append(t.keys, key)
		if read || r.Cut == Sub {
			t.out = append(t.out, t.fetch(flat, key, Ref{Buf: v.buf}))
		}
	}
	v.dirty = v.dirty || write
	if r.Part != (shard.Range{}) {
		return Ref{Buf: v.buf}
	}
	return Ref{Buf: v.buf, Cut: r.Cut}
}

// release lets go of what the next op does not use: written values go back to their tier.
func (t *tierer) release(ops []Op, next int) {
	left := t.keys[:0]
	for _, key := range t.keys {
		if next < len(ops) && touches(&ops[next].Args, key) {
			left = append(left, key)
			continue
		}
		if v := t.here[key]; v.dirty {
			op := newOp(Evict, t.lane(key))
			op.Flat, op.Note = v.flat, t.note(key)
			op.Args.Src, op.Args.Dst = Ref{Buf: v.buf}, key
			t.out = append(t.out, op)
		}
		delete(t.here, key)
	}
	t.keys = left
}

// touches says that an op's operands are the buffer and part of key.
func touches(a *Args, key Ref) bool {
	same := func(r Ref) bool { return r.Buf == key.Buf && r.Part == key.Part }
	return same(a.Src) || same(a.Dst) || slices.ContainsFunc(a.Ins, same) || slices.ContainsFunc(a.Outs, same)
}

func (t *tierer) fetch(flat int, from, to Ref) Op {
	op := newOp(Fetch, t.lane(from))
	op.Flat, op.Note = flat, t.note(from)
	op.Args.Src, op.Args.Dst = from, to
	return op
}

func (t *tierer) lane(r Ref) Lane {
	if t.tier(r) == FileTier {
		return IO
	}
	return Copy
}

func (t *tierer) note(r Ref) string {
	s := t.c.bufs[r.Buf].State
	if r.Part != (shard.Range{}) {
		s += fmt.Sprintf(" [%d,%d)", r.Part.Lo, r.Part.Hi)
	}
	return s
}
