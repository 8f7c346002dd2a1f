package report

import (
	"sync/atomic"
	"time"

	"zeroshard/memory"
	"zeroshard/models"
	"zeroshard/zero"
)

// Clock is the time since the book was opened. It must not go back, and all ranks of a process share one.
type Clock func() time.Duration

// Since is the clock that starts at epoch.
func Since(epoch time.Time) Clock { return func() time.Duration { return time.Since(epoch) } }

// opTime is when an op ran, in nanoseconds of the clock; zero where it did not.
type opTime struct{ start, end int64 }

// Recorder listens to one rank. It is a zero.Watcher and a memory.Observer.
//
// Op is called from a rank's lanes at once. Each line of a plan belongs to one lane, so each place of times has one writer; Book
// reads them between steps, when the lanes are idle. Position may be called at any time.
type Recorder struct {
	*memory.Tracker
	now     Clock
	scripts []*script // the program's plans, by mode; times are kept of training
	times   []opTime  // of the step at hand, by op
	at      [zero.Host]atomic.Uint64
	live    atomic.Int64 // device bytes in use
	peak    atomic.Int64 // the largest live since the last step
}

func newRecorder(now Clock, scripts []*script, times []opTime) *Recorder {
	r := &Recorder{Tracker: memory.NewTracker(), now: now, scripts: scripts, times: times}
	base := scripts[models.Train].base.Sum()
	r.live.Store(base)
	r.peak.Store(base)
	return r
}

// Op takes the time of an op.
func (r *Recorder) Op(p *zero.Plan, line int, done bool) {
	t := int64(r.now())
	which := int(p.Options.Mode)
	if which >= len(r.scripts) || line >= len(r.scripts[which].plan.Ops) {
		return // of another program
	}
	if which == int(models.Train) {
		if o := &r.times[line]; done {
			o.end = t
		} else {
			o.start = t
		}
	}
	word, k := uint64(which)<<32|uint64(line)<<1, 2*line
	if done {
		word, k = word|1, k+1
	}
	r.at[p.Ops[line].Lane].Store(word + 1) // zero is "nothing yet"
	if d := r.scripts[which].delta[k]; d != 0 {
		r.raise(r.live.Add(d))
	}
}

func (r *Recorder) raise(live int64) {
	for old := r.peak.Load(); live > old && !r.peak.CompareAndSwap(old, live); old = r.peak.Load() {
	}
}

// takePeak is the most device bytes in use since it was called last.
func (r *Recorder) takePeak() int64 { return r.peak.Swap(r.live.Load()) }

// Position is where a rank stands.
type Position struct {
	Mode  string         `json:"mode"`  // of the plan: train, eval, logits; "" before the first op
	Ops   int            `json:"ops"`   // in the plan
	Live  int64          `json:"live"`  // device bytes in use
	Lanes []LanePosition `json:"lanes"` // in the order of zero.Lane
}

// LanePosition is the op that a lane has begun last.
type LanePosition struct {
	Lane string `json:"lane"`
	Op   int    `json:"op"`   // -1 before the first
	Line string `json:"line"` // as the plan prints it
	Busy bool   `json:"busy"` // it runs
}

// Position tells where the rank stands now. Lanes are read one after the other, so they may be a moment apart.
func (r *Recorder) Position() Position {
	p := Position{Live: r.live.Load()}
	newest := -1
	for l := range r.at {
		lane := LanePosition{Lane: zero.Lane(l).String(), Op: -1}
		if word := r.at[l].Load(); word != 0 {
			word--
			s := r.scripts[word>>32]
			lane.Op, lane.Busy = int(uint32(word)>>1), word&1 == 0
			lane.Line = s.plan.Line(lane.Op)
			if l == int(zero.Compute) || newest < 0 {
				newest = l
				p.Mode, p.Ops = s.plan.Options.Mode.String(), len(s.plan.Ops)
			}
		}
		p.Lanes = append(p.Lanes, lane)
	}
	return p
}
