package report

import (
	"cmp"
	"slices"
	"strings"

	"zeroshard/memory"
	"zeroshard/zero"
)

// Peak is the moment when a rank had most device memory in use, and by whom.
type Peak struct {
	Bytes   int64    `json:"bytes"`
	Step    int      `json:"step"`
	Time    int64    `json:"ns"`
	Phase   Phase    `json:"phase"`
	Op      int      `json:"op"` // plan line of the compute lane then
	Holders []Holder `json:"holders"`
	Others  int      `json:"others"`      // holders that are not listed
	Rest    int64    `json:"other_bytes"` // and their bytes
}

// Holder is an owner of bytes.
type Holder struct {
	Name   string   `json:"name"`
	Kind   string   `json:"kind"`
	Bytes  int64    `json:"bytes"`
	Unit   string   `json:"unit"`             // that needs them, or the flat whose state they are; "" for what the whole rank shares
	Phase  Phase    `json:"phase"`            // in which they were begun; PhaseResident for what lives all the time
	Line   string   `json:"line"`             // of the plan, that began them; of what lives all the time, the first that gathers or updates them, else betweenSteps
	First  int      `json:"first"`            // first and last op that use them, -1 for what lives all the time
	Last   int      `json:"last"`             //
	Params []string `json:"params,omitempty"` // parameters whose state they are
}

// maxHolders is how many holders of a peak are listed.
const maxHolders = 10

// holders lists who has bytes at a moment of a step, largest first.
func (s *script) holders(layoutOf func(flat int) (name string, params []string), times []opTime, at int64) []Holder {
	c := s.plan.Cost()
	out := []Holder{
		{Name: "kernel scratch", Kind: memory.Workspace.String(), Bytes: c.Scratch, First: -1, Last: -1},
		{Name: "transport", Kind: memory.Communication.String(), Bytes: c.Workspace, First: -1, Last: -1},
	}
	for i := range s.plan.Bufs {
		b := &s.plan.Bufs[i]
		h := Holder{Name: b.Name, Kind: b.Kind.String(), Bytes: b.Bytes(), First: -1, Last: -1}
		switch {
		case onDevice(b):
			h.Unit, h.Params = layoutOf(b.Flat)
			if op := s.mover(i); op >= 0 {
				h.Line = s.plan.Line(op)
			}
		case s.first[i] >= 0 && times[s.first[i]].start <= at && at < times[s.last[i]].end:
			op := s.first[i]
			h.Unit, h.Phase, h.Line, h.First, h.Last = s.needs(layoutOf, op), s.phase[op], s.plan.Line(op), b.First, b.Last
		default:
			continue
		}
		out = append(out, h)
	}
	for i := range out {
		if h := &out[i]; h.First < 0 {
			h.Phase, h.Line = PhaseResident, cmp.Or(h.Line, betweenSteps)
		}
	}
	out = slices.DeleteFunc(out, func(h Holder) bool { return h.Bytes == 0 })
	slices.SortStableFunc(out, func(x, y Holder) int { return cmp.Compare(y.Bytes, x.Bytes) })
	return out
}

// betweenSteps stands for the plan line of what no op gathers or updates.
const betweenSteps = "between steps"

// mover is the first op that gathers or updates a buffer, -1 if none does.
func (s *script) mover(buf int) int {
	return slices.IndexFunc(s.plan.Ops, func(o zero.Op) bool {
		switch o.Verb {
		case zero.Gather:
			return o.Args.Src.Buf == buf || o.Args.Dst.Buf == buf
		case zero.Update:
			return slices.ContainsFunc(o.Args.Ins, func(r zero.Ref) bool { return r.Buf == buf }) ||
				slices.ContainsFunc(o.Args.Outs, func(r zero.Ref) bool { return r.Buf == buf })
		}
		return false
	})
}

// onDevice reports whether a buffer lives in device memory as long as the engine.
func onDevice(b *zero.Buf) bool { return b.Resident && b.Tier == "" }

// needs is what an op works for: its unit, its flat, or the unit of the next op that has one.
func (s *script) needs(layoutOf func(int) (string, []string), op int) string {
	if o := &s.plan.Ops[op]; o.Unit < 0 && o.Flat >= 0 {
		name, _ := layoutOf(o.Flat)
		return name
	}
	for i := op; i < len(s.plan.Ops); i++ {
		if u := s.unit(i); u != "" {
			return u
		}
		if i > op && s.plan.Ops[i].Verb == zero.Update {
			break
		}
	}
	return ""
}

// flatNames tells a flat's name and its parameters.
func (b *Book) flatNames(flat int) (string, []string) {
	f := &b.program.Layout.Flats[flat]
	var params []string
	for _, seg := range f.Segs {
		params = append(params, seg.Param.Name)
	}
	return f.Name, params
}

// standing is the op of the compute lane that runs at a moment, or the next one.
func (s *script) standing(times []opTime, at int64) int {
	lane := s.lanes[zero.Compute]
	for _, i := range lane {
		if times[i].end > at {
			return i
		}
	}
	if len(lane) == 0 {
		return 0
	}
	return lane[len(lane)-1]
}

// peak finds a rank's peak over the steps kept.
func (b *Book) peak(rank int, origin int64) Peak {
	s := b.recorders[rank].scripts[0]
	var top moment
	var on *page
	for _, pg := range b.pages() {
		if m := highest(s.moments(pg.times[rank], window(pg.times))); m.live.Sum() > top.live.Sum() {
			top, on = m, pg
		}
	}
	if on == nil {
		return Peak{Op: -1, Holders: []Holder{}}
	}
	times := on.times[rank]
	p := Peak{Bytes: top.live.Sum(), Step: on.step, Time: top.at - origin, Op: s.standing(times, top.at)}
	p.Phase = s.phase[p.Op]
	p.Holders = s.holders(b.flatNames, times, top.at)
	for i, h := range p.Holders {
		p.Holders[i].Line = strings.TrimSpace(h.Line)
		if i >= maxHolders {
			p.Others++
			p.Rest += h.Bytes
		}
	}
	p.Holders = p.Holders[:min(len(p.Holders), maxHolders)]
	return p
}
