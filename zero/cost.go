package zero

import (
	"zeroshard/collectives"
	"zeroshard/memory"
	"zeroshard/models"
	"zeroshard/shard"
)

// Traffic is bytes that a rank sends, by what for.
type Traffic struct {
	AllGather     int64 `json:"all_gather"`
	ReduceScatter int64 `json:"reduce_scatter"`
	Scalars       int64 `json:"scalars"` // losses, token counts and the norm's accumulator
}

// Sum is all of it.
func (t Traffic) Sum() int64 { return t.AllGather + t.ReduceScatter + t.Scalars }

func (t Traffic) max(o Traffic) Traffic {
	return Traffic{max(t.AllGather, o.AllGather), max(t.ReduceScatter, o.ReduceScatter), max(t.Scalars, o.Scalars)}
}

// Cost is what a plan needs, per rank: known before the run, and equal to what the run uses.
type Cost struct {
	ModelState int64         // parameters, gradients and optimizer state at rest: ZeRO's formula plus padding
	Live       memory.ByKind // live bytes by kind at the op where most are live
	PeakOp     int           // that op
	Hole       int64         // bytes of the arenas that no buffer uses then
	Resident   int64         // arena of what lives between steps
	Transient  int64         // arena of what lives within one
	Scratch    int64         // what the kernels ask for
	Workspace  int64         // what the transport asks for
	Host, Disk Tier          // what rests outside the device
	Flops      int64         // floating-point operations of a rank that has a leaf in every slot
}

// Tier is what a tier holds for a rank, and what moves in one run of the plan: bytes.
type Tier struct {
	Holds   int64 `json:"holds"`
	Fetched int64 `json:"fetched"`
	Evicted int64 `json:"evicted"`
}

// Peak is the device bytes of a rank.
func (c Cost) Peak() int64 { return c.Resident + c.Transient + c.Scratch + c.Workspace }

// Cost adds up the plan.
func (p *Plan) Cost() Cost {
	c := Cost{Resident: p.Resident, Transient: p.Transient, Scratch: alignUp(p.Options.Needs.Scratch), Workspace: p.workspace()}
	var live memory.ByKind
	for i := range p.Bufs {
		if b := &p.Bufs[i]; b.Resident && b.Tier == "" {
			live[b.Kind] += b.Bytes()
			c.ModelState += b.Bytes()
		}
	}
	for i := range p.Bufs {
		if b := &p.Bufs[i]; b.Tier != "" {
			c.tier(b.Tier).Holds += b.Bytes()
		}
	}
	live[memory.Workspace] += c.Scratch
	live[memory.Communication] += c.Workspace
	c.Live, c.PeakOp = live, none
	starts, ends := p.byOp()
	for i := range p.Ops {
		for _, b := range starts[i] {
			live[p.Bufs[b].Kind] += p.Bufs[b].Bytes()
		}
		if c.PeakOp == none || live.Sum() > c.Live.Sum() {
			c.Live, c.PeakOp = live, i
		}
		for _, b := range ends[i] {
			live[p.Bufs[b].Kind] -= p.Bufs[b].Bytes()
		}
		c.Flops += p.flops(&p.Ops[i])
		c.moves(p, &p.Ops[i])
	}
	c.Hole = c.Peak() - c.Live.Sum()
	return c
}

// tier is the column of a tier.
func (c *Cost) tier(name string) *Tier {
	if name == FileTier {
		return &c.Disk
	}
	return &c.Host
}

// moves counts what a fetch or an evict moves.
func (c *Cost) moves(p *Plan, op *Op) {
	switch op.Verb {
	case Fetch:
		b := &p.Bufs[op.Args.Dst.Buf]
		c.tier(p.Bufs[op.Args.Src.Buf].Tier).Fetched += b.Bytes()
	case Evict:
		b := &p.Bufs[op.Args.Src.Buf]
		c.tier(p.Bufs[op.Args.Dst.Buf].Tier).Evicted += b.Bytes()
	}
}

// byOp lists the transient buffers whose life starts and ends with each op.
func (p *Plan) byOp() (starts, ends [][]int) {
	starts, ends = make([][]int, len(p.Ops)), make([][]int, len(p.Ops))
	for i := range p.Bufs {
		if b := &p.Bufs[i]; !b.Resident && b.First >= 0 {
			starts[b.First] = append(starts[b.First], i)
			ends[b.Last] = append(ends[b.Last], i)
		}
	}
	return starts, ends
}

func (p *Plan) flops(op *Op) int64 {
	if !op.compute() {
		return 0
	}
	f := p.model.units[op.Unit].sizes.Flops
	switch op.Verb {
	case Backward:
		return 2 * f
	case LossGrad:
		return 3 * f
	}
	return f
}

// workspace is the most staging that one collective needs.
func (p *Plan) workspace() (most int64) {
	if p.Options.Needs.Workspace == nil {
		return 0
	}
	for i := range p.Ops {
		switch op := &p.Ops[i]; op.Verb {
		case Gather, Norm, Losses:
			most = max(most, p.Options.Needs.Workspace(collectives.AllGather, p.Bufs[op.Args.Dst.Buf].Bytes()))
		case Reduce:
			most = max(most, p.Options.Needs.Workspace(collectives.ReduceScatter, p.Bufs[op.Args.Src.Buf].Bytes()))
		}
	}
	return alignUp(most)
}

// Wire is the bytes that a rank sends in one run of the plan, exactly: a gather sends a rank's part to each peer, a
// reduce-scatter each peer its slice, from ranks that have a leaf in the window.
func (p *Plan) Wire(rank int) (t Traffic) {
	for i := range p.Ops {
		op := &p.Ops[i]
		if op.Lane != Comm {
			continue
		}
		lo, hi := p.view(op.Args.Src, rank)
		peers := int64(p.Mesh.Size(op.Axis) - 1)
		n := int64(hi-lo) * int64(p.Bufs[op.Args.Src.Buf].DType.Size())
		switch op.Verb {
		case Gather:
			t.AllGather += peers * n
		case Reduce:
			if op.Args.Fold.Present[p.Mesh.Coord(rank, op.Axis)] {
				t.ReduceScatter += n / (peers + 1) * peers
			}
		default:
			t.Scalars += peers * n
		}
	}
	return t
}

// WireMax is the largest Wire over ranks, by verb.
func (p *Plan) WireMax() (t Traffic) {
	seen := map[int]bool{} // ranks with one coordinate on the axis of shards send the same
	for r := range p.Mesh.World() {
		if c := p.Mesh.Coord(r, shard.Shards); !seen[c] {
			seen[c] = true
			t = t.max(p.Wire(r))
		}
		if p.Options.Mode == models.Train && p.evenWindows() {
			break
		}
	}
	return t
}

// evenWindows says that every rank has a part in every window.
func (p *Plan) evenWindows() bool {
	for w := range p.Windows.Count {
		for r := range p.Windows.Ranks {
			if p.Windows.Range(w, r).Len() == 0 {
				return false
			}
		}
	}
	return true
}
