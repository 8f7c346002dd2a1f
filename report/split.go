package report

import (
	"time"

	"zeroshard/zero"
)

// Split is where a rank's step time went. The parts are disjoint: what overlaps with compute counts as compute, so
// Comm and IO are what a better overlap could still hide.
type Split struct {
	Compute time.Duration // the compute lane runs
	Comm    time.Duration // it does not, and a collective moves bytes
	IO      time.Duration // neither, and a copy or a file moves bytes
	Wait    time.Duration // nothing of this rank moves: it waits for other ranks, for data, for the executor
}

// Sum is the whole step.
func (s Split) Sum() time.Duration { return s.Compute + s.Comm + s.IO + s.Wait }

func (s Split) plus(o Split) Split {
	return Split{s.Compute + o.Compute, s.Comm + o.Comm, s.IO + o.IO, s.Wait + o.Wait}
}

// split divides the window of a step. Ops of a lane follow each other, so a lane's times are sorted and disjoint.
func (b *Book) split(rank int, times []opTime, w opTime) Split {
	lanes := &b.recorders[rank].scripts[0].lanes
	busy := func(l zero.Lane) []opTime {
		out := make([]opTime, 0, len(lanes[l]))
		for _, i := range lanes[l] {
			if t := b.moving(rank, i, times[i]); t.end > t.start {
				out = append(out, t)
			}
		}
		return out
	}
	s := Split{}
	var before [][]opTime
	for _, part := range [...]struct {
		lane zero.Lane
		sum  *time.Duration
	}{{zero.Compute, &s.Compute}, {zero.Comm, &s.Comm}, {zero.IO, &s.IO}, {zero.Copy, &s.IO}} {
		own := busy(part.lane)
		for _, b := range before {
			own = without(own, b)
		}
		*part.sum += total(own)
		before = append(before, own)
	}
	s.Wait = max(0, time.Duration(w.end-w.start)-s.Sum())
	return s
}

// without is the parts of a that lie outside b. Both are sorted and disjoint.
func without(a, b []opTime) (out []opTime) {
	k := 0
	for _, t := range a {
		for k < len(b) && b[k].end <= t.start {
			k++
		}
		for j := k; j < len(b) && b[j].start < t.end; j++ {
			if b[j].start > t.start {
				out = append(out, opTime{t.start, b[j].start})
			}
			t.start = b[j].end
		}
		if t.start < t.end {
			out = append(out, t)
		}
	}
	return out
}

func total(list []opTime) (d time.Duration) {
	for _, t := range list {
		d += time.Duration(t.end - t.start)
	}
	return d
}
