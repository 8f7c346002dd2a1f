package zero

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"zeroshard/device"
	"zeroshard/models"
	"zeroshard/shard"
)

// Plan is one pass over the model as a list of operations: what each rank does, in which order, where its buffers lie, and what
// waits for what. It is the same on every rank; a rank's slice and leaves are data that the executor fills in.
//
// Ops of one lane run in list order, at the same time as other lanes; Op.After names the ops of other lanes that must be done
// before. There is no other synchronisation, so what overlaps can be read off the text.
type Plan struct {
	Strategy  Strategy
	Mesh      shard.Mesh
	Windows   shard.Windows // of one replica
	Options   Options
	Ops       []Op
	Bufs      []Buf // the resident ones first
	Resident  int64 // bytes of the resident arena
	Transient int64 // bytes of the transient arena that this plan needs

	model *resolved
}

// resolved is a model on a layout: what its units read and what rests for its flats.
type resolved struct {
	layout *shard.Layout
	mesh   shard.Mesh
	win    shard.Windows
	units  []unitInfo
	flats  []flatInfo
	specs  map[string][]string // spec → parameters in the model's order
}

// Line is op i as the plan prints it.
func (p *Plan) Line(i int) string {
	op := &p.Ops[i]
	s := fmt.Sprintf("%02d %s", i, op.label(p))
	if len(op.After) > 0 {
		s += fmt.Sprintf("%*s after", max(0, 58-len(s)), "")
		for k, d := range op.After {
			if k > 0 {
				s += ","
			}
			s += fmt.Sprintf(" %02d", d)
		}
	}
	return s
}

// Header says in a few lines what the plan is for.
func (p *Plan) Header() string {
	o := &p.Options
	var b strings.Builder
	fmt.Fprintf(&b, "plan %s  strategy %s  mesh %v\n", p.Options.Mode, p.Strategy.Name, p.Mesh)
	fmt.Fprintf(&b, "leaves %d of %d×%d tokens  windows %d of %d  prefetch %d  recompute %s\n", o.Leaves, o.Shape.Batch, o.Shape.Seq,
		p.Windows.Count, p.Windows.Size, o.Prefetch, recomputeWord(o.Recompute))
	if o.Shape.Room > 0 {
		fmt.Fprintf(&b, "caches of %d tokens\n", o.Shape.Room)
	}
	fmt.Fprintf(&b, "precision %v  states %s\n", o.Precision, strings.Join(o.States, ","))
	if t := p.Strategy.Tiers(); t != "" {
		fmt.Fprintf(&b, "offload %s\n", t)
	}
	return b.String()
}

func recomputeWord(n int) string {
	switch n {
	case 0:
		return "none"
	case 1:
		return "all"
	}
	return fmt.Sprintf("every %d", n)
}

// Text is the plan for people: header and ops.
func (p *Plan) Text() string {
	var b strings.Builder
	b.WriteString(p.Header())
	for i := range p.Ops {
		b.WriteString(p.Line(i))
		b.WriteByte('\n')
	}
	return b.String()
}

// Buffers lists each buffer's place, size and life.
func (p *Plan) Buffers() string {
	var b strings.Builder
	for i := range p.Bufs {
		x := &p.Bufs[i]
		life := "resident"
		switch {
		case x.Tier != "":
			life = "on " + x.Tier
		case !x.Resident:
			life = fmt.Sprintf("ops %02d-%02d", x.First, x.Last)
		}
		fmt.Fprintf(&b, "%-9s %12d +%-12d %-14s %s\n", life, x.Off, x.Bytes(), x.Kind, x.Name)
	}
	return b.String()
}

// SHA256 identifies the plan: ranks with equal hashes do the same calls on the same sizes at the same places.
func (p *Plan) SHA256() string {
	h := sha256.New()
	for _, f := range p.model.flats {
		fmt.Fprintf(h, "%s %d %d\n", f.Name, f.shardLen, f.fullLen)
	}
	h.Write([]byte(p.Text()))
	h.Write([]byte(p.Buffers()))
	return hex.EncodeToString(h.Sum(nil))
}

// Leaves lists the leaves that a rank computes, by slot over all windows; -1 where it has none.
func (p *Plan) Leaves(rank int) []int {
	var out []int
	base, member := 0, rank
	if p.Options.Mode == models.Train {
		member = p.Mesh.Coord(rank, shard.Shards)
		base = p.Mesh.Coord(rank, shard.Replicate) * p.Windows.Leaves
	}
	for w := range p.Windows.Count {
		for slot := range p.Windows.Size {
			leaf, ok := p.Windows.Leaf(w, member, slot)
			if !ok {
				leaf = none
			} else {
				leaf += base
			}
			out = append(out, leaf)
		}
	}
	return out
}

// view resolves a Ref on a rank: the elements [lo, hi) of its buffer.
func (p *Plan) view(r Ref, rank int) (lo, hi int) {
	b := &p.Bufs[r.Buf]
	lo, hi = 0, b.Len
	if r.Cut != Whole {
		f := &p.model.flats[b.Flat]
		if b.Len == f.fullLen {
			lo = p.Mesh.Coord(rank, shard.Shards) * f.shardLen
		}
		hi = lo + f.shardLen
		if r.Cut == Sub {
			n := f.shardLen / p.Mesh.Size(shard.Replicate)
			lo += p.Mesh.Coord(rank, shard.Replicate) * n
			hi = lo + n
		}
	}
	if r.Part != (shard.Range{}) {
		lo, hi = lo+r.Part.Lo, lo+r.Part.Hi
	}
	return lo, hi
}

// buffer is a Ref as device memory.
func (p *Plan) buffer(r Ref, rank int, resident, transient device.Mem) device.Buffer {
	if r.Buf == none {
		return device.Buffer{}
	}
	b := &p.Bufs[r.Buf]
	mem := transient
	if b.Resident {
		mem = resident
	}
	lo, hi := p.view(r, rank)
	return device.Buffer{Mem: mem, Off: b.Off, Len: b.Len, DType: b.DType}.Slice(lo, hi)
}
