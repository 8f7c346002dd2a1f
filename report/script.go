package report

import (
	"zeroshard/memory"
	"zeroshard/models"
	"zeroshard/zero"
)

// script is what a recorder knows of a plan beforehand: all that does not change from run to run.
type script struct {
	plan  *zero.Plan
	names []string         // of the model's units
	base  memory.ByKind    // device bytes that live all the time
	delta []int64          // by op, two each: transient bytes that begin to live when it starts, and that die when it ends
	lanes [zero.Host][]int // by lane: its ops
	first []int            // by transient buffer (index into plan.Bufs): op at whose start it begins; -1 for others
	last  []int            // and op at whose end it dies
	phase []Phase          // by op
	live  []int64          // by op: device bytes that live there in the order of the list
}

func newScript(p *zero.Plan, m models.Model) *script {
	s := &script{plan: p, delta: make([]int64, 2*len(p.Ops)), first: make([]int, len(p.Bufs)), last: make([]int, len(p.Bufs)),
		phase: phases(p), live: make([]int64, len(p.Ops))}
	for _, u := range m.Units() {
		s.names = append(s.names, u.Name())
	}
	for i := range p.Ops {
		if l := p.Ops[i].Lane; l != zero.Host {
			s.lanes[l] = append(s.lanes[l], i)
		}
	}
	s.lives()
	return s
}

// lives finds the op at which each transient buffer begins and ends, and the bytes that live beside them.
//
// Where the list says that a flat is dropped at a reshard, it means that nothing after the op before it uses the bytes: that op's end is
// the moment. (Bookkeeping ops have no time of their own.)
func (s *script) lives() {
	c := s.plan.Cost()
	s.base = c.Live
	var sums = make([]int64, len(s.plan.Ops)+1)
	for i := range s.plan.Bufs {
		b := &s.plan.Bufs[i]
		s.first[i], s.last[i] = -1, -1
		if b.Resident || b.First < 0 {
			continue
		}
		if b.First <= c.PeakOp && c.PeakOp <= b.Last {
			s.base[b.Kind] -= b.Bytes()
		}
		sums[b.First] += b.Bytes()
		sums[b.Last+1] -= b.Bytes()
		s.first[i], s.last[i] = s.timed(b.First, 1), s.timed(b.Last, -1)
		s.delta[2*s.first[i]] += b.Bytes()
		s.delta[2*s.last[i]+1] -= b.Bytes()
	}
	at := s.base.Sum()
	for i := range s.live {
		at += sums[i]
		s.live[i] = at
	}
}

// timed is the nearest op that takes time, from op i on in a direction; backwards, of the compute lane where i is bookkeeping.
func (s *script) timed(i, step int) int {
	ops := s.plan.Ops
	if ops[i].Lane != zero.Host {
		return i
	}
	for k := i; k >= 0 && k < len(ops); k += step {
		if ops[k].Lane == zero.Compute {
			return k
		}
	}
	return i
}

// unit is the name of the unit that an op runs, "" for none.
func (s *script) unit(op int) string {
	if u := s.plan.Ops[op].Unit; u >= 0 && u < len(s.names) {
		return s.names[u]
	}
	return ""
}

// Phase is a part of a step.
type Phase string

// The phases. An op that moves data belongs to the phase that needs it.
const (
	PhaseForward  Phase = "forward"
	PhaseBackward Phase = "backward"
	PhaseUpdate   Phase = "update"
)

// PhaseResident is the phase of what lives all the time.
const PhaseResident Phase = "resident"

// Phases lists them in the order of a step.
func Phases() []Phase { return []Phase{PhaseForward, PhaseBackward, PhaseUpdate} }

// phases gives every op its phase: that of its verb, or of the next op whose verb has one, or of the last such.
func phases(p *zero.Plan) []Phase {
	out := make([]Phase, len(p.Ops))
	next := Phase("")
	for i := len(p.Ops) - 1; i >= 0; i-- {
		switch p.Ops[i].Verb {
		case zero.Forward:
			next = PhaseForward
		case zero.LossGrad, zero.Recompute, zero.Backward, zero.Reduce:
			next = PhaseBackward
		case zero.Square, zero.Norm, zero.Update:
			next = PhaseUpdate
		}
		out[i] = next
	}
	last := PhaseForward
	for i := range out {
		if out[i] == "" {
			out[i] = last
		}
		last = out[i]
	}
	return out
}
