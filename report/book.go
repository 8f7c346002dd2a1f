package report

import (
	"time"

	"zeroshard/models"
	"zeroshard/shard"
	"zeroshard/zero"
)

// Book holds what the recorders of a run's ranks write down, in a ring of the last steps.
type Book struct {
	now       Clock
	program   *zero.Program
	recorders []*Recorder
	ring      []page
	steps     int // closed so far
	readiness
}

// page is one step in the ring.
type page struct {
	step  int        // its number; 0 for none
	times [][]opTime // by rank and op
}

// maxTimes bounds the ops of a book, over ranks and steps: of a plan of very many fewer steps are kept, but at least one.
const maxTimes = 1 << 19

// NewBook opens the book of a program that runs model. It keeps the last keep steps, of every rank.
func NewBook(pr *zero.Program, m models.Model, keep int, now Clock) *Book {
	world := pr.Train.Mesh.World()
	b := &Book{now: now, program: pr, readiness: newReadiness(pr.Train)}
	keep = max(1, min(keep, maxTimes/(world*max(1, len(pr.Train.Ops)))))
	for range keep + 1 { // one is being written
		pg := page{times: make([][]opTime, world)}
		for r := range pg.times {
			pg.times[r] = make([]opTime, len(pr.Train.Ops))
		}
		b.ring = append(b.ring, pg)
	}
	var scripts []*script
	for _, p := range pr.Plans() {
		scripts = append(scripts, newScript(p, m))
	}
	for r := range world {
		b.recorders = append(b.recorders, newRecorder(now, scripts, b.ring[0].times[r]))
	}
	return b
}

// Rank is the recorder of a rank.
func (b *Book) Rank(r int) *Recorder { return b.recorders[r] }

// Ranks is their number.
func (b *Book) Ranks() int { return len(b.recorders) }

// RankStep is what one step took on one rank.
type RankStep struct {
	Used  int64 // device bytes reserved
	Peak  int64 // the most device bytes in use during the step
	Split Split
}

// EndStep closes a step that took so long: it must be called between two steps, when no op runs. What of took lies
// outside the ops (preparing batches, the executor) counts as waiting.
func (b *Book) EndStep(step int, took time.Duration) []RankStep {
	pg := &b.ring[b.steps%len(b.ring)]
	pg.step = step
	b.judge(pg.times)
	w := window(pg.times)
	out := make([]RankStep, len(b.recorders))
	for r, rec := range b.recorders {
		out[r] = RankStep{Used: rec.Snapshot().Reserved, Peak: rec.takePeak(), Split: b.split(r, pg.times[r], w)}
		out[r].Split.Wait += max(0, took-time.Duration(w.end-w.start))
	}
	b.steps++
	next := &b.ring[b.steps%len(b.ring)]
	next.step = 0
	for r, rec := range b.recorders {
		rec.times = next.times[r]
		clear(rec.times)
	}
	return out
}

// drawn reports whether the single ops of a rank are shown. All are counted; but a page or a trace of millions of ops helps nobody, and the
// ranks of a plan do the same.
func (b *Book) drawn(rank int) bool {
	return rank == 0 || (rank+1)*len(b.program.Train.Ops)*(len(b.ring)-1) <= 2*maxTimes
}

// pages are the closed steps that are kept, oldest first.
func (b *Book) pages() (out []*page) {
	for i := max(0, b.steps-(len(b.ring)-1)); i < b.steps; i++ {
		out = append(out, &b.ring[i%len(b.ring)])
	}
	return out
}

// window is from the first start to the last end of any rank.
func window(times [][]opTime) (w opTime) {
	for _, rank := range times {
		for _, o := range rank {
			if o.end == 0 {
				continue
			}
			if w.end == 0 || o.start < w.start {
				w.start = o.start
			}
			w.end = max(w.end, o.end)
		}
	}
	return w
}

// readiness knows for each collective op when its last member came, and who that was: before that moment the others wait, and from then
// on bytes move.
type readiness struct {
	plan   *zero.Plan
	leader map[shard.Axis][]int // by rank: the first rank of its group
	ready  [][]int64            // by op of the comm lane, then rank
	late   [][]int              // who came last
	index  []int                // by op: its place in ready, -1 for none
}

func newReadiness(p *zero.Plan) readiness {
	r := readiness{plan: p, leader: map[shard.Axis][]int{}, index: make([]int, len(p.Ops))}
	world := p.Mesh.World()
	for i := range p.Ops {
		r.index[i] = -1
		op := &p.Ops[i]
		if op.Lane != zero.Comm {
			continue
		}
		r.index[i] = len(r.ready)
		r.ready = append(r.ready, make([]int64, world))
		r.late = append(r.late, make([]int, world))
		if r.leader[op.Axis] == nil {
			r.leader[op.Axis] = make([]int, world)
			for rank := range world {
				r.leader[op.Axis][rank] = p.Mesh.Ranks(rank, op.Axis)[0]
			}
		}
	}
	return r
}

// judge fills in a step.
func (r *readiness) judge(times [][]opTime) {
	for i, k := range r.index {
		if k < 0 {
			continue
		}
		leader, ready, late := r.leader[r.plan.Ops[i].Axis], r.ready[k], r.late[k]
		clear(ready)
		for rank := range times {
			if g, t := leader[rank], times[rank][i].start; t > ready[g] {
				ready[g], late[g] = t, rank
			}
		}
		for rank := range times {
			if g := leader[rank]; g != rank {
				ready[rank], late[rank] = ready[g], late[g]
			}
		}
	}
}

// moving is when an op of a rank does its work: for a collective, from when all members are there.
func (r *readiness) moving(rank, op int, t opTime) opTime {
	if k := r.index[op]; k >= 0 {
		t.start = min(max(t.start, r.ready[k][rank]), t.end)
	}
	return t
}
