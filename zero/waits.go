package zero

import (
	"cmp"
	"slices"
)

// wait fills Op.After: for each op, the latest op of every other lane that must be done before it starts, left out where an
// earlier wait says it already. An op waits for
//
//   - the last writer of what it reads,
//   - the last writer and all readers since of what it writes,
//   - the last users of bytes that its buffers take over from buffers that died before,
//   - when it gathers parameters or fetches: the compute op before it in the list, so that it starts where the plan says.
func (p *Plan) wait() {
	w := &waiter{p: p, users: newUsers(p), write: make([]int, len(p.Bufs)), reads: make([]clock, len(p.Bufs)), known: make([]clock, len(p.Ops))}
	for i := range w.write {
		w.write[i], w.reads[i] = none, noClock()
	}
	for l := range w.last {
		w.last[l] = none
	}
	_, ends := p.byOp()
	for i := range p.Ops {
		if p.Ops[i].Lane != Host {
			w.op(i)
		}
		for _, b := range ends[i] {
			w.end(b)
		}
	}
}

// clock holds by lane the index of the last op that is known to be done; -1 for none.
type clock [lanes]int

func noClock() (c clock) {
	for l := range c {
		c[l] = none
	}
	return c
}

func (c *clock) join(o *clock) {
	for l := range c {
		c[l] = max(c[l], o[l])
	}
}

type waiter struct {
	p     *Plan
	users *users
	write []int   // by buffer: last writer
	reads []clock // by buffer: last readers since, by lane
	known []clock // by op: what is done when it is done
	last  clock   // last op of each lane
}

func (w *waiter) op(i int) {
	op := &w.p.Ops[i]
	need := noClock()
	op.uses(func(buf int, write bool) {
		b := &w.p.Bufs[buf]
		if !b.Resident && b.First == i {
			w.users.take(b, &need)
		}
		w.done(w.write[buf], &need)
		if write {
			need.join(&w.reads[buf])
		}
	})
	if op.Verb == Gather && op.Note == "" || op.Verb == Fetch {
		w.done(w.last[Compute], &need)
	}
	before := noClock()
	if l := w.last[op.Lane]; l != none {
		before = w.known[l]
	}
	for _, d := range w.latest(need, op.Lane) {
		if before[w.p.Ops[d].Lane] < d {
			op.After = append(op.After, d)
			before.join(&w.known[d])
		}
	}
	slices.Sort(op.After)
	before[op.Lane] = i
	w.known[i] = before
	w.last[op.Lane] = i
	op.uses(func(buf int, write bool) {
		if write {
			w.write[buf], w.reads[buf] = i, noClock()
		} else {
			w.reads[buf][op.Lane] = i
		}
	})
}

// latest lists the ops of other lanes in need, latest first: an early one is often implied by a later one.
func (w *waiter) latest(need clock, own Lane) []int {
	var out []int
	for l, d := range need {
		if d != none && Lane(l) != own {
			out = append(out, d)
		}
	}
	slices.SortFunc(out, func(a, b int) int { return cmp.Compare(b, a) })
	return out
}

func (w *waiter) done(op int, c *clock) {
	if op != none {
		l := w.p.Ops[op].Lane
		c[l] = max(c[l], op)
	}
}

// end hands the bytes of a buffer that dies to whoever takes them next.
func (w *waiter) end(buf int) {
	c := w.reads[buf]
	w.done(w.write[buf], &c)
	w.users.give(&w.p.Bufs[buf], &c)
}

// users knows for each stretch of the transient arena the last ops, by lane, that used its bytes.
type users struct {
	cuts []int64 // where stretches start
	last []clock // by stretch
}

func newUsers(p *Plan) *users {
	u := &users{}
	for i := range p.Bufs {
		if b := &p.Bufs[i]; !b.Resident && b.First >= 0 {
			u.cuts = append(u.cuts, b.Off, b.Off+alignUp(b.Bytes()))
		}
	}
	slices.Sort(u.cuts)
	u.cuts = slices.Compact(u.cuts)
	u.last = make([]clock, len(u.cuts))
	for i := range u.last {
		u.last[i] = noClock()
	}
	return u
}

func (u *users) each(b *Buf, f func(*clock)) {
	i, _ := slices.BinarySearch(u.cuts, b.Off)
	for end := b.Off + alignUp(b.Bytes()); i < len(u.cuts) && u.cuts[i] < end; i++ {
		f(&u.last[i])
	}
}

func (u *users) take(b *Buf, need *clock) { u.each(b, func(c *clock) { need.join(c) }) }
func (u *users) give(b *Buf, c *clock)    { u.each(b, func(s *clock) { s.join(c) }) }
