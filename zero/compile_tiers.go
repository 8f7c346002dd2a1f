package zero

import (
	"fmt"

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
	t := &tierer{c: c, here: map[Ref]*visit{}}
	ops = c.subgroups(ops)
	for i := range ops {
		t.op(ops[i])
		t.release(ops, i+1)
	}
	return ahead(t.out, c.o.Prefetch, mover{
		moves: func(o *Op) (int, bool) { return o.Args.Src.Buf, o.Verb == Fetch },
		stops: func(o *Op) (int, bool) { return o.Args.Dst.Buf, o.Verb == Evict },
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
		for lo := 0; lo < n; lo += c.o.subGroup() {
			part := op
			part.Part = shard.Range{Lo: lo, Hi: min(lo+c.o.subGroup(), n)}
			cut := func(r Ref) Ref { r.Part = part.Part; return r }
			part.Args.Src = cut(op.Args.Src)
			part.Args.Ins, part.Args.Outs = mapRefs(op.Args.Ins, cut), mapRefs(op.Args.Outs, cut)
			part.Note = fmt.Sprintf("[%d,%d)", part.Part.Lo, part.Part.Hi)
			out = append(out, part)
		}
	}
	return out
}

func mapRefs(refs []Ref, f func(Ref) Ref) (out []Ref) {
	for _, r := range refs {
		out = append(out, f(r))
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
	read := func(r Ref) Ref { return t.use(op.Flat, r, true, false) }
	write := func(r Ref) Ref { return t.use(op.Flat, r, false, true) }
	op.Args.Src = read(op.Args.Src)
	if op.Verb == Update {
		op.Args.Ins = mapRefs(op.Args.Ins, func(r Ref) Ref { return t.use(op.Flat, r, true, true) })
	} else {
		op.Args.Ins = mapRefs(op.Args.Ins, read)
	}
	op.Args.Dst = write(op.Args.Dst)
	op.Args.Outs = mapRefs(op.Args.Outs, write)
	t.out = append(t.out, op)
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
	keep := map[Ref]bool{}
	if next < len(ops) {
		a := &ops[next].Args
		for _, r := range append(append([]Ref{a.Src, a.Dst}, a.Ins...), a.Outs...) {
			keep[Ref{Buf: r.Buf, Part: r.Part}] = true
		}
	}
	var left []Ref
	for _, key := range t.keys {
		if keep[key] {
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
