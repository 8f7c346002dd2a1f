package report

import (
	"cmp"
	"slices"
	"time"

	"zeroshard/zero"
)

// Wait is a pause of a rank's compute lane and its reason, added up over the steps that are kept.
type Wait struct {
	Rank   int           `json:"rank"`
	Op     int           `json:"op"`     // plan line that could not start
	For    int           `json:"for"`    // plan line that it waited for; -1: none of this rank's, the op had not been issued yet
	Peer   int           `json:"peer"`   // rank that came last to the collective waited for, if most of the pause was for it; else -1
	Time   time.Duration `json:"ns"`     // of all steps kept
	Counts int           `json:"counts"` // pauses that it adds up
}

// pause is one gap of the compute lane.
type pause struct {
	op, reason, peer int
	opTime
}

// pauses lists the gaps of a rank's compute lane in a step. A gap ends when the op may start, so the reason is the op of another lane that
// it waits for (Op.After) and that ended last.
func (b *Book) pauses(rank int, times []opTime, w opTime) (out []pause) {
	at := w.start
	for _, i := range b.recorders[rank].scripts[0].lanes[zero.Compute] {
		t := times[i]
		if t.end == 0 {
			continue
		}
		if t.start > at {
			out = append(out, b.pause(rank, i, times, opTime{at, t.start}))
		}
		at = max(at, t.end)
	}
	return out
}

func (b *Book) pause(rank, op int, times []opTime, gap opTime) pause {
	p := pause{op: op, reason: -1, peer: -1, opTime: gap}
	for _, d := range b.program.Train.Ops[op].After {
		if end := times[d].end; end > gap.start && (p.reason < 0 || end > times[p.reason].end) {
			p.reason = d
		}
	}
	if p.reason < 0 {
		return p
	}
	if k := b.index[p.reason]; k >= 0 && b.late[k][rank] != rank {
		if missing := b.ready[k][rank] - gap.start; 2*missing > gap.end-gap.start {
			p.peer = b.late[k][rank]
		}
	}
	return p
}

// waits adds up the pauses of the steps kept, longest first.
func (b *Book) waits() []Wait {
	type key struct{ rank, op, reason, peer int }
	sums := map[key]*Wait{}
	for _, pg := range b.pages() {
		b.judge(pg.times)
		w := window(pg.times)
		for rank := range pg.times {
			for _, p := range b.pauses(rank, pg.times[rank], w) {
				k := key{rank, p.op, p.reason, p.peer}
				if sums[k] == nil {
					sums[k] = &Wait{Rank: rank, Op: p.op, For: p.reason, Peer: p.peer}
				}
				sums[k].Time += time.Duration(p.end - p.start)
				sums[k].Counts++
			}
		}
	}
	out := []Wait{}
	for _, w := range sums {
		out = append(out, *w)
	}
	slices.SortFunc(out, func(x, y Wait) int {
		return cmp.Or(cmp.Compare(y.Time, x.Time), cmp.Compare(x.Rank, y.Rank), cmp.Compare(x.Op, y.Op), cmp.Compare(x.For, y.For), cmp.Compare(x.Peer, y.Peer))
	})
	return out
}
