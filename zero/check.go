package zero

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"zeroshard/memory"
	"zeroshard/models"
	"zeroshard/shard"
)

// Check proves from ops and waits alone that a plan races on nothing and keeps the rules below; it returns all faults at once. (That the
// plan computes the right thing is what the equality tests show.)
//
//   - waits point back to other lanes, so the graph has no cycle;
//   - a unit reads sharded values only between their gather and their reshard;
//   - what an op reads was written before, and nothing is written while others may read it: by the waits, not by the list;
//   - each gradient is reduced once a window, each element of a shard is updated once, after the last reduce and after the norm;
//   - buffers that share bytes never live at the same time: by the waits;
//   - what a buffer keeps from run to run shares no bytes with any other;
//   - only fetch and evict touch what rests in a tier;
//   - collectives name no leaf, so every rank makes the same calls.
func (p *Plan) Check() error {
	c := &checker{p: p, known: make([]clock, len(p.Ops)), uses: make([][]use, len(p.Bufs))}
	c.order()
	if len(c.errs) == 0 {
		c.hazards()
		c.values()
		c.places()
		if p.Options.Mode == models.Train {
			c.training()
		}
	}
	return errors.Join(c.errs...)
}

type use struct {
	op    int
	write bool
}

type checker struct {
	p     *Plan
	known []clock // by op: what is done when it is done
	uses  [][]use // by buffer
	errs  []error
}

func (c *checker) bad(op int, format string, args ...any) {
	if len(c.errs) < 8 {
		c.errs = append(c.errs, fmt.Errorf("%w: line %s: "+format, append([]any{ErrPlan, c.p.Line(op)}, args...)...))
	}
}

// before says that op a is done before op b starts.
func (c *checker) before(a, b int) bool { return c.known[b][c.p.Ops[a].Lane] >= a }

func (c *checker) order() {
	last := noClock()
	for i := range c.p.Ops {
		op := &c.p.Ops[i]
		k := noClock()
		if op.Lane != Host && last[op.Lane] != none {
			k = c.known[last[op.Lane]]
		}
		for _, d := range op.After {
			if d < 0 || d >= i || c.p.Ops[d].Lane == op.Lane || c.p.Ops[d].Lane == Host || op.Lane == Host {
				c.bad(i, "waits for line %d, which is no earlier op of another lane", d)
				return
			}
			k.join(&c.known[d])
		}
		if op.Lane == Comm && (op.Slot != none || op.Axis == shard.None) {
			c.bad(i, "a collective must name an axis and no leaf")
		}
		k[op.Lane] = i
		c.known[i] = k
		last[op.Lane] = i
		op.uses(func(buf int, write bool) {
			if op.Lane != Host {
				c.uses[buf] = append(c.uses[buf], use{i, write})
			}
			if c.p.Bufs[buf].Tier != "" && op.Verb != Fetch && op.Verb != Evict {
				c.bad(i, "uses %q, which rests in a tier", c.p.Bufs[buf].Name)
			}
		})
	}
}

// hazards checks each buffer's uses against each other.
func (c *checker) hazards() {
	for b, uses := range c.uses {
		for k, u := range uses {
			for j := k - 1; j >= 0; j-- {
				o := uses[j]
				if (o.write || u.write) && o.op != u.op && !c.before(o.op, u.op) {
					c.bad(u.op, "uses %q without waiting for line %d", c.p.Bufs[b].Name, o.op)
				}
				if o.write && o.op != u.op {
					break
				}
			}
		}
		if len(uses) > 0 && c.p.Bufs[b].fresh() && !uses[0].write {
			c.bad(uses[0].op, "reads %q, which nothing has written", c.p.Bufs[b].Name)
		}
	}
}

// values checks that units read sharded flats between gather and reshard only.
func (c *checker) values() {
	live := map[int]bool{}
	for i := range c.p.Ops {
		op := &c.p.Ops[i]
		switch {
		case op.Verb == Gather && op.Note != "" && op.Args.Dst.Buf == op.Args.Src.Buf && op.Args.Dst.Cut >= op.Args.Src.Cut:
			c.bad(i, "gathers into its own part")
		case op.Verb == Merge && op.Args.Src.Buf == op.Args.Dst.Buf:
			c.bad(i, "adds a gradient to itself")
		case (op.Verb == Gather || op.Verb == Fetch) && c.p.Bufs[op.Args.Dst.Buf].Kind == memory.Gathered:
			live[op.Args.Dst.Buf] = true
		case op.Verb == Reshard:
			if !live[op.Args.Src.Buf] {
				c.bad(i, "drops values that are not gathered")
			}
			delete(live, op.Args.Src.Buf)
		}
		for _, b := range op.Args.P {
			if b != none && c.p.Bufs[b].Kind == memory.Gathered && !live[b] {
				c.bad(i, "reads %q outside gather and reshard", c.p.Bufs[b].Name)
			}
		}
	}
	if len(live) > 0 {
		c.bad(len(c.p.Ops)-1, "the plan ends with %d flats still gathered", len(live))
	}
}

// fresh says that each run of a plan writes the buffer before it reads it: transient ones, and gradients.
func (b *Buf) fresh() bool {
	return !b.Resident || b.Kind == memory.Gradient || b.Kind == memory.GradientShard
}

// places checks the transient arena stretch by stretch: each buffer there starts after all uses of the one before.
func (c *checker) places() {
	var order []int
	for i := range c.p.Bufs {
		b := &c.p.Bufs[i]
		if b.Resident || b.First < 0 {
			continue
		}
		if b.Off+alignUp(b.Bytes()) > c.p.Transient {
			c.bad(b.First, "%q lies outside the arena", b.Name)
			return
		}
		order = append(order, i)
		if b.Keep && (b.First != 0 || b.Last != len(c.p.Ops)-1) {
			c.bad(b.First, "%q is kept from run to run, but lives for a part of one", b.Name)
		}
	}
	slices.SortFunc(order, func(x, y int) int { return cmp.Compare(c.p.Bufs[x].First, c.p.Bufs[y].First) })
	u := newUsers(c.p)
	holder := make([]int, len(u.cuts))
	for i := range holder {
		holder[i] = none
	}
	for _, i := range order {
		b := &c.p.Bufs[i]
		k, _ := slices.BinarySearch(u.cuts, b.Off)
		for end := b.Off + alignUp(b.Bytes()); k < len(u.cuts) && u.cuts[k] < end; k++ {
			if o := holder[k]; o != none {
				if b.Keep || c.p.Bufs[o].Keep {
					c.bad(b.First, "%q and %q share bytes, and one is kept from run to run", b.Name, c.p.Bufs[o].Name)
				}
				for _, x := range c.uses[o] {
					if !c.before(x.op, b.First) {
						c.bad(b.First, "%q takes bytes of %q before line %d is done with them", b.Name, c.p.Bufs[o].Name, x.op)
					}
				}
			}
			holder[k] = i
		}
	}
}

// training checks reduces and updates.
func (c *checker) training() {
	norm := none
	reduced, lastReduce, updated := map[int]int{}, map[int]int{}, map[int]int{}
	windows := map[[2]int]bool{}
	for i := range c.p.Ops {
		switch op := &c.p.Ops[i]; op.Verb {
		case Reduce:
			if op.Axis == shard.Shards {
				if key := [2]int{op.Flat, op.Win}; windows[key] {
					c.bad(i, "reduces window %d a second time", op.Win)
				} else {
					windows[key] = true
				}
				reduced[op.Flat]++
			}
			lastReduce[op.Flat] = i
		case Norm:
			norm = i
		case Update:
			if op.Part.Lo != updated[op.Flat] {
				c.bad(i, "updates from element %d on, but %d are updated so far", op.Part.Lo, updated[op.Flat])
			}
			if updated[op.Flat] = op.Part.Hi; op.Part == (shard.Range{}) {
				updated[op.Flat] = c.p.model.flats[op.Flat].shardLen
			}
			if norm == none || !c.before(norm, i) {
				c.bad(i, "updates before the norm is known")
			}
			if r, ok := lastReduce[op.Flat]; ok && !c.before(r, i) {
				c.bad(i, "updates before the last reduce, line %d", r)
			}
		}
	}
	for f := range c.p.model.flats {
		info := &c.p.model.flats[f]
		elements, times := info.shardLen, c.p.Windows.Count
		if !c.p.model.reducesOver(f) {
			times = 0
		}
		if !info.trainable() || info.fullLen == 0 {
			elements, times = 0, 0
		}
		if updated[f] != elements || reduced[f] != times {
			c.bad(len(c.p.Ops)-1, "flat %s is reduced %d times (want %d), and %d of %d elements of its shard are updated", info.Name, reduced[f], times, updated[f], elements)
		}
	}
}
