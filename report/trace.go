package report

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"

	"zeroshard/memory"
	"zeroshard/zero"
)

// WriteTrace writes the steps kept as a JSON object of Chrome trace events, which chrome://tracing and ui.perfetto.dev show: a process
// is a rank, a thread a lane, a slice an op; counters are memory by kind. In each collective arrows lead from the rank that came last,
// for which the others waited, to the others.
//
// Events: X a slice, C a counter, s and f the ends of an arrow, M names. Times are microseconds since the first step began.
func (b *Book) WriteTrace(w io.Writer) error {
	t := &tracer{w: bufio.NewWriter(w)}
	t.text(`{"displayTimeUnit":"ms","traceEvents":[`)
	for rank := range b.recorders {
		t.names(rank)
	}
	var origin int64
	for i, pg := range b.pages() {
		step := window(pg.times)
		if i == 0 {
			origin = step.start
		}
		b.judge(pg.times)
		for rank := range pg.times {
			if b.drawn(rank) {
				b.traceRank(t, rank, pg, step, origin)
			}
		}
	}
	t.text("\n]}\n")
	if t.err != nil {
		return fmt.Errorf("report: trace: %w", t.err)
	}
	if err := t.w.Flush(); err != nil {
		return fmt.Errorf("report: trace: %w", err)
	}
	return nil
}

// event is one trace event. Its fields are those of the format.
type event struct {
	Name string         `json:"name"`
	Ph   string         `json:"ph"`
	Ts   float64        `json:"ts"`
	Dur  *float64       `json:"dur,omitempty"`
	Pid  int            `json:"pid"`
	Tid  int            `json:"tid"`
	Cat  string         `json:"cat,omitempty"`
	ID   string         `json:"id,omitempty"`
	Bp   string         `json:"bp,omitempty"`
	Args map[string]any `json:"args,omitempty"`
}

// tracer writes events one by one: a trace is larger than what one wants in memory.
type tracer struct {
	w    *bufio.Writer
	some bool
	err  error
}

func (t *tracer) text(s string) {
	if t.err == nil {
		_, t.err = t.w.WriteString(s)
	}
}

func (t *tracer) event(e event) {
	raw, err := json.Marshal(e)
	if err != nil && t.err == nil {
		t.err = err
	}
	if t.some {
		t.text(",")
	}
	t.some = true
	t.text("\n" + string(raw))
}

func (t *tracer) names(rank int) {
	t.event(event{Name: "process_name", Ph: "M", Pid: rank, Args: map[string]any{"name": fmt.Sprint("rank ", rank)}})
	t.event(event{Name: "process_sort_index", Ph: "M", Pid: rank, Args: map[string]any{"sort_index": rank}})
	for l := range zero.Host {
		t.event(event{Name: "thread_name", Ph: "M", Pid: rank, Tid: tid(l), Args: map[string]any{"name": l.String()}})
		t.event(event{Name: "thread_sort_index", Ph: "M", Pid: rank, Tid: tid(l), Args: map[string]any{"sort_index": int(l)}})
	}
}

// tid counts from 1: 0 is the process itself.
func tid(l zero.Lane) int { return int(l) + 1 }

func micros(ns int64) float64 { return float64(ns) / 1e3 }

func (b *Book) traceRank(t *tracer, rank int, pg *page, step opTime, origin int64) {
	p, s := b.program.Train, b.recorders[rank].scripts[0]
	for i, o := range pg.times[rank] {
		op := &p.Ops[i]
		if o.end == 0 || op.Lane == zero.Host {
			continue
		}
		dur := micros(o.end - o.start)
		t.event(event{Name: b.title(i), Ph: "X", Ts: micros(o.start - origin), Dur: &dur, Pid: rank, Tid: tid(op.Lane), Cat: string(s.phase[i]),
			Args: map[string]any{"step": pg.step, "plan": p.Line(i)}})
		b.arrow(t, rank, i, pg, origin)
	}
	for _, m := range s.moments(pg.times[rank], step) {
		args := map[string]any{}
		for k, n := range m.live {
			if n > 0 {
				args[memory.Kind(k).String()] = n
			}
		}
		t.event(event{Name: "device memory", Ph: "C", Ts: micros(m.at - origin), Pid: rank, Args: args})
	}
}

// arrow is this rank's end of a collective's arrows.
func (b *Book) arrow(t *tracer, rank, op int, pg *page, origin int64) {
	k := b.index[op]
	if k < 0 || b.program.Train.Mesh.Size(b.program.Train.Ops[op].Axis) < 2 {
		return
	}
	late, name := b.late[k][rank], b.program.Train.Ops[op].Verb.String()
	arrow := func(ph string, to int, ts int64) event {
		return event{Name: name, Cat: "collective", Ph: ph, ID: fmt.Sprintf("%d.%d.%d", pg.step, op, to), Pid: rank, Tid: tid(zero.Comm), Ts: micros(ts - origin)}
	}
	if late != rank {
		e := arrow("f", rank, b.ready[k][rank])
		e.Bp = "e"
		t.event(e)
		return
	}
	for _, to := range b.program.Train.Mesh.Ranks(rank, b.program.Train.Ops[op].Axis) {
		if to != rank {
			t.event(arrow("s", to, pg.times[rank][op].start))
		}
	}
}

// title is an op in a few words: its verb and what it is about.
func (b *Book) title(op int) string {
	o := &b.program.Train.Ops[op]
	name := o.Verb.String()
	if u := b.recorders[0].scripts[0].unit(op); u != "" {
		name += " " + u
	}
	if o.Flat >= 0 {
		flat, _ := b.flatNames(o.Flat)
		name += " " + flat
	}
	return name
}
