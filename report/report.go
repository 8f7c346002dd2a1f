package report

import (
	"time"

	"zeroshard/zero"
)

// Subject says what a report is about.
type Subject struct {
	Title string  `json:"title"`
	Facts []Fact  `json:"facts"`
	Limit int64   `json:"limit"` // of a rank's device memory, bytes; 0: none
	Used  []Peaks `json:"-"`     // by rank, as the device counted
}

// Fact is a line of a report's head.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Peaks is a rank's peak by kind, with "hole" for what no buffer used then: as planned, and as the device gave out.
type Peaks struct {
	Planned, Used     int64
	PlannedBy, UsedBy map[string]int64
}

// Report is memory.json: docs/format/memory-report.md. All bytes are bytes, all times nanoseconds.
type Report struct {
	Version int `json:"version"`
	Subject
	Plan      PlanInfo   `json:"plan"`
	Kinds     []KindInfo `json:"kinds"`
	Steps     []Span     `json:"steps"`
	Ranks     []Rank     `json:"ranks"`
	Waits     []Wait     `json:"waits"` // the longest
	WaitCount int        `json:"wait_count"`
	Process   Process    `json:"process"`
	Arenas    int64      `json:"arenas"` // device bytes of all ranks of this process
	Tiers     []TierInfo `json:"tiers"`  // where state of a rank rests outside its device, as planned
}

// TierInfo is what a tier holds for a rank, and moves in one step: bytes.
type TierInfo struct {
	Name string `json:"name"`
	zero.Tier
}

// PlanInfo is what the report's numbers of ops and lanes mean.
type PlanInfo struct {
	SHA256 string   `json:"sha256"`
	Lanes  []string `json:"lanes"`
	Lines  []string `json:"lines"` // by op, as the plan prints it
	Lane   []int    `json:"lane"`  // by op: index into Lanes, -1 for bookkeeping
	Phase  []Phase  `json:"phase"` // by op
}

// Span is a step: its number, and when it began and ended since the first began.
type Span struct {
	Step  int   `json:"step"`
	Start int64 `json:"start"`
	End   int64 `json:"end"`
}

// Rank is what is known of one rank.
type Rank struct {
	Rank    int              `json:"rank"`
	Planned int64            `json:"planned_peak"`
	Used    int64            `json:"used_peak"`
	ByKind  []PeakOf         `json:"by_kind"`
	Peak    Peak             `json:"peak"`      // within the steps
	Curves  []Curve          `json:"curves"`    // by step
	Ops     []OpTimes        `json:"ops"`       // by step; none where there are too many to draw
	Split   Parts            `json:"split"`     // mean of the steps
	Phases  map[Phase]Number `json:"phases_ms"` // mean of the steps
}

// PeakOf is a kind's part of a peak.
type PeakOf struct {
	Kind    string `json:"kind"`
	Planned int64  `json:"planned"`
	Used    int64  `json:"used"`
}

// OpTimes are when each op of the plan ran, since the first step began; both zero for bookkeeping.
type OpTimes struct {
	Start []int64 `json:"start"`
	End   []int64 `json:"end"`
}

// maxWaits is how many waits a report lists.
const maxWaits = 20

// Report draws up what the book holds. It must be called between steps.
func (b *Book) Report(about Subject, p Process) *Report {
	r := &Report{Version: 1, Subject: about, Plan: b.planInfo(), Kinds: kinds(), Steps: []Span{}, Ranks: []Rank{}, Tiers: []TierInfo{}, Process: p}
	if r.Facts == nil {
		r.Facts = []Fact{}
	}
	var origin int64
	for i, pg := range b.pages() {
		w := window(pg.times)
		if i == 0 {
			origin = w.start
		}
		r.Steps = append(r.Steps, Span{pg.step, w.start - origin, w.end - origin})
	}
	cost := b.program.Train.Cost()
	for _, t := range []TierInfo{{zero.HostTier, cost.Host}, {zero.FileTier, cost.Disk}} {
		if t.Holds > 0 {
			r.Tiers = append(r.Tiers, t)
		}
	}
	r.Waits = b.waits()
	r.WaitCount = len(r.Waits)
	r.Waits = r.Waits[:min(maxWaits, len(r.Waits))]
	for rank := range b.recorders {
		r.Ranks = append(r.Ranks, b.rank(rank, about, origin))
		r.Arenas += b.recorders[rank].Snapshot().PeakReserved
	}
	return r
}

func (b *Book) planInfo() PlanInfo {
	p := b.program.Train
	out := PlanInfo{SHA256: p.SHA256(), Phase: b.recorders[0].scripts[0].phase}
	for l := range zero.Host {
		out.Lanes = append(out.Lanes, l.String())
	}
	for i := range p.Ops {
		lane := int(p.Ops[i].Lane)
		if p.Ops[i].Lane == zero.Host {
			lane = -1
		}
		out.Lines, out.Lane = append(out.Lines, p.Line(i)), append(out.Lane, lane)
	}
	return out
}

func (b *Book) rank(rank int, about Subject, origin int64) Rank {
	out := Rank{Rank: rank, Peak: b.peak(rank, origin), Curves: []Curve{}, Ops: []OpTimes{}, ByKind: []PeakOf{}, Phases: map[Phase]Number{}}
	if rank < len(about.Used) {
		u := about.Used[rank]
		out.Planned, out.Used = u.Planned, u.Used
		for _, k := range append(kinds(), KindInfo{Name: "hole"}) {
			if u.PlannedBy[k.Name] != 0 || u.UsedBy[k.Name] != 0 {
				out.ByKind = append(out.ByKind, PeakOf{k.Name, u.PlannedBy[k.Name], u.UsedBy[k.Name]})
			}
		}
	}
	s := b.recorders[rank].scripts[0]
	var sum Split
	phase := map[Phase]time.Duration{}
	pages := b.pages()
	for _, pg := range pages {
		w, times := window(pg.times), pg.times[rank]
		b.judge(pg.times)
		out.Curves = append(out.Curves, columns(thin(s.moments(times, w), maxMoments), origin))
		if b.drawn(rank) {
			out.Ops = append(out.Ops, since(times, origin))
		}
		sum = sum.plus(b.split(rank, times, w))
		s.phaseTimes(times, w, phase)
	}
	if n := time.Duration(len(pages)); n > 0 {
		out.Split = Split{sum.Compute / n, sum.Comm / n, sum.IO / n, sum.Wait / n}.parts()
		for ph, d := range phase {
			out.Phases[ph] = Milliseconds(d / n)
		}
	}
	return out
}

func since(times []opTime, origin int64) OpTimes {
	o := OpTimes{make([]int64, len(times)), make([]int64, len(times))}
	for i, t := range times {
		if t.end != 0 {
			o.Start[i], o.End[i] = t.start-origin, t.end-origin
		}
	}
	return o
}

// phaseTimes adds a step's time to its phases: each moment belongs to the phase of the compute op that runs, or that comes next. What
// follows the last belongs to that.
func (s *script) phaseTimes(times []opTime, w opTime, sum map[Phase]time.Duration) {
	at, last := w.start, PhaseUpdate
	for _, i := range s.lanes[zero.Compute] {
		if end := times[i].end; end > at {
			last = s.phase[i]
			sum[last] += time.Duration(end - at)
			at = end
		}
	}
	sum[last] += time.Duration(w.end - at)
}
