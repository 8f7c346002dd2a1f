package zero

import (
	"cmp"
	"slices"
)

// align is where places start: the bytes of one grain of fp32.
const align = 512

func alignUp(n int64) int64 { return (n + align - 1) / align * align }

// place gives every buffer its bytes. Resident ones lie one behind the other. Transient ones share an arena: largest first, each
// at the lowest offset that is free over its whole life (Pisarchyk and Lee, arXiv 2001.03288, "greedy by size").
func (p *Plan) place() {
	p.lives()
	p.Resident = 0
	var order []int
	kept := func(i int) int { // caches first, so that they lie at the same places in all plans that have the same
		if p.Bufs[i].Keep {
			return 0
		}
		return 1
	}
	for i := range p.Bufs {
		b := &p.Bufs[i]
		switch {
		case b.Tier != "":
		case b.Resident:
			b.Off = p.Resident
			p.Resident += alignUp(b.Bytes())
		case b.First >= 0:
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(x, y int) int {
		return cmp.Or(cmp.Compare(kept(x), kept(y)), cmp.Compare(p.Bufs[y].Bytes(), p.Bufs[x].Bytes()), cmp.Compare(p.Bufs[x].First, p.Bufs[y].First))
	})
	t := newTimeline(len(p.Ops), len(p.Bufs))
	for _, i := range order {
		b := &p.Bufs[i]
		size := alignUp(b.Bytes())
		b.Off = t.gap(p.Bufs, b, size)
		t.add(b, i)
		p.Transient = max(p.Transient, b.Off+size)
	}
}

// lives finds the first and last op that use each transient buffer.
func (p *Plan) lives() {
	for i := range p.Bufs {
		p.Bufs[i].First, p.Bufs[i].Last = none, none
	}
	for i := range p.Ops {
		p.Ops[i].uses(func(buf int, _ bool) {
			b := &p.Bufs[buf]
			if b.Resident {
				return
			}
			if b.First < 0 {
				b.First = i
			}
			b.Last = i
			if b.Keep {
				b.First, b.Last = 0, len(p.Ops)-1
			}
		})
	}
	p.linger()
}

// linger keeps the bytes of a gradient that is sent, or evicted, from reuse for the next Prefetch units, so that they compute while it
// moves instead of waiting for its bytes.
func (p *Plan) linger() {
	var units []int // ops that run units, from the end
	for i := len(p.Ops) - 1; i >= 0; i-- {
		op := &p.Ops[i]
		if op.compute() {
			units = append(units, i)
		}
		if op.Verb != Reduce && op.Verb != Evict || p.Bufs[op.Args.Src.Buf].Resident || len(units) == 0 || p.Options.Prefetch == 0 {
			continue
		}
		b := &p.Bufs[op.Args.Src.Buf]
		b.Last = max(b.Last, units[max(len(units)-p.Options.Prefetch, 0)])
	}
}

// timeline finds placed buffers that live at the same time: by stretches of ops, so that a plan of a million buffers
// does not compare each with each.
type timeline struct {
	stretch [][]int // by op/stretchLen: placed buffers that live there
	seen    []int   // by buffer: the query that has met it
	query   int
	busy    []int
}

const stretchLen = 32

func newTimeline(ops, bufs int) *timeline {
	return &timeline{stretch: make([][]int, ops/stretchLen+1), seen: make([]int, bufs)}
}

func (t *timeline) add(b *Buf, i int) {
	for s := b.First / stretchLen; s <= b.Last/stretchLen; s++ {
		t.stretch[s] = append(t.stretch[s], i)
	}
}

// gap is the lowest offset at which size bytes are free as long as b lives.
func (t *timeline) gap(bufs []Buf, b *Buf, size int64) int64 {
	t.query++
	t.busy = t.busy[:0]
	for s := b.First / stretchLen; s <= b.Last/stretchLen; s++ {
		for _, i := range t.stretch[s] {
			if o := &bufs[i]; t.seen[i] != t.query && o.First <= b.Last && b.First <= o.Last {
				t.seen[i] = t.query
				t.busy = append(t.busy, i)
			}
		}
	}
	slices.SortFunc(t.busy, func(x, y int) int { return cmp.Compare(bufs[x].Off, bufs[y].Off) })
	var at int64
	for _, i := range t.busy {
		o := &bufs[i]
		if at+size <= o.Off {
			break
		}
		at = max(at, o.Off+alignUp(o.Bytes()))
	}
	return at
}
