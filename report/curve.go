package report

import (
	"cmp"
	"slices"

	"zeroshard/memory"
	"zeroshard/zero"
)

// Curve is a rank's device memory during one step, as columns over time: from one time to the next nothing changes.
type Curve struct {
	Time []int64            `json:"ns"`   // since the first of the steps began
	Kind map[string][]int64 `json:"kind"` // bytes in use, by kind
	Plan []int64            `json:"plan"` // bytes that the plan's list has in use at the op last begun
}

// moment is a row of a curve.
type moment struct {
	at   int64
	live memory.ByKind
	plan int64
}

// edge is a change of what lives: the start or end of a buffer or, with buf -1, of a line.
type edge struct {
	at    int64
	begin bool
	buf   int
	line  int
}

// moments computes the curve of a step. Ends come before starts at the same time: bytes are handed on.
func (s *script) moments(times []opTime, w opTime) []moment {
	var edges []edge
	for b := range s.first {
		if s.first[b] >= 0 {
			edges = append(edges, edge{times[s.first[b]].start, true, b, -1}, edge{times[s.last[b]].end, false, b, -1})
		}
	}
	for i := range times {
		if s.plan.Ops[i].Lane != zero.Host {
			edges = append(edges, edge{times[i].start, true, -1, i})
		}
	}
	slices.SortFunc(edges, func(x, y edge) int {
		if x.at == y.at && x.begin != y.begin {
			if x.begin {
				return 1
			}
			return -1
		}
		return cmp.Or(cmp.Compare(x.at, y.at), cmp.Compare(x.line, y.line), cmp.Compare(x.buf, y.buf))
	})
	now, line := moment{at: w.start, live: s.base, plan: s.base.Sum()}, -1
	out := []moment{now}
	for _, e := range edges {
		switch {
		case e.buf >= 0 && e.begin:
			now.live[s.plan.Bufs[e.buf].Kind] += s.plan.Bufs[e.buf].Bytes()
		case e.buf >= 0:
			now.live[s.plan.Bufs[e.buf].Kind] -= s.plan.Bufs[e.buf].Bytes()
		case e.line > line:
			line = e.line
			now.plan = s.live[line]
		default:
			continue
		}
		now.at = e.at
		out = follow(out, now)
	}
	now.at, now.plan = w.end, s.base.Sum()
	return follow(out, now)
}

// follow adds a moment, or puts it in the place of one at the same time.
func follow(list []moment, m moment) []moment {
	if n := len(list) - 1; list[n].at == m.at {
		list[n] = m
		return list
	}
	return append(list, m)
}

// maxMoments bounds the rows that a page draws for a rank and step: twice the pixels of a wide screen.
const maxMoments = 4000

// thin keeps of every stretch of time the moments with most and with least in use, so that no peak is lost.
func thin(list []moment, most int) []moment {
	if len(list) <= most {
		return list
	}
	out := []moment{list[0]}
	stretches := most/2 - 1
	for k := range stretches {
		lo, hi := 1+k*(len(list)-2)/stretches, 1+(k+1)*(len(list)-2)/stretches
		low, high := lo, lo
		for i := lo; i < hi; i++ {
			if list[i].live.Sum() < list[low].live.Sum() {
				low = i
			}
			if list[i].live.Sum() > list[high].live.Sum() {
				high = i
			}
		}
		out = append(out, list[min(low, high)])
		if low != high {
			out = append(out, list[max(low, high)])
		}
	}
	return append(out, list[len(list)-1])
}

// columns turns moments into a curve; kinds that are never in use are left out.
func columns(list []moment, origin int64) Curve {
	c := Curve{Kind: map[string][]int64{}}
	var used memory.ByKind
	for _, m := range list {
		c.Time, c.Plan = append(c.Time, m.at-origin), append(c.Plan, m.plan)
		for k, n := range m.live {
			used[k] = max(used[k], n)
		}
	}
	for k := range used {
		if used[k] == 0 {
			continue
		}
		column := make([]int64, len(list))
		for i := range list {
			column[i] = list[i].live[k]
		}
		c.Kind[memory.Kind(k).String()] = column
	}
	return c
}

// highest is the first moment with most in use.
func highest(list []moment) (m moment) {
	for _, x := range list {
		if x.live.Sum() > m.live.Sum() {
			m = x
		}
	}
	return m
}
