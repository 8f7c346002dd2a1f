package report

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"zeroshard/internal/golden"
	"zeroshard/memory"
	"zeroshard/zero"
)

var about = Subject{Title: "sim", Limit: 64 << 10, Facts: []Fact{{"model", "sim </script>"}}, Used: []Peaks{
	{Planned: 50000, Used: 50000, PlannedBy: map[string]int64{"parameter": 49000, "hole": 1000}, UsedBy: map[string]int64{"parameter": 49000, "hole": 1000}},
	{Planned: 50000, Used: 50001, PlannedBy: map[string]int64{"parameter": 49000, "hole": 1000}, UsedBy: map[string]int64{"parameter": 49001, "hole": 1000}},
}}

func reported(t *testing.T) (*sim, *Report) {
	t.Helper()
	s := newSim(t, 2)
	s.now = time.Second
	for n := 1; n <= 3; n++ {
		s.step(n)
	}
	return s, s.book.Report(about, Process{Resident: 100 << 20, Cgroup: Cgroup{Version: 2, Path: "/x", Limit: 1 << 30, Usage: 1 << 29}})
}

// The figures of a run on a clock that stands still between ops: every number can be checked by hand against the plan.
func TestReportGolden(t *testing.T) {
	s, r := reported(t)
	raw, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	// Lists of numbers on one line each: a diff shows which curve moved.
	list := regexp.MustCompile(`\[[\s\d,-]+\]`).ReplaceAllFunc(raw, func(b []byte) []byte { return bytes.Join(bytes.Fields(b), nil) })
	golden.Check(t, "testdata/memory.json", string(list)+"\n")
	var trace bytes.Buffer
	if err := s.book.WriteTrace(&trace); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "testdata/trace.json", trace.String())
}

func TestReportKeepsTheLastSteps(t *testing.T) {
	_, r := reported(t)
	if len(r.Steps) != 2 || r.Steps[0].Step != 2 || r.Steps[1].Step != 3 || r.Steps[0].Start != 0 {
		t.Errorf("steps %+v", r.Steps)
	}
	for _, rank := range r.Ranks {
		if len(rank.Curves) != 2 || len(rank.Ops) != 2 {
			t.Errorf("rank %d has %d curves and %d steps of ops", rank.Rank, len(rank.Curves), len(rank.Ops))
		}
	}
}

// What is in use never passes the arenas, starts and ends with what rests, and its highest point has the holders' sum.
func TestCurve(t *testing.T) {
	for _, c := range []struct {
		name             string
		replicas, shards int
		o                zero.Options
	}{
		{"two ranks", 1, 2, zero.Options{Leaves: 2, Prefetch: 1}},
		{"no prefetch", 1, 2, zero.Options{Leaves: 2}},
		{"recompute", 1, 2, zero.Options{Leaves: 5, Prefetch: 2, Recompute: 1}},
		{"one rank", 1, 1, zero.Options{Leaves: 3}},
		{"hybrid", 2, 2, zero.Options{Leaves: 4, Prefetch: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := simOf(t, 1, c.replicas, c.shards, c.o)
			got := s.step(1)
			cost := s.program.Train.Cost()
			arenas := cost.Peak()
			for r, rank := range s.book.Report(Subject{}, Process{}).Ranks {
				curve := rank.Curves[0]
				most := int64(0)
				for i := range curve.Time {
					sum := int64(0)
					for _, column := range curve.Kind {
						sum += column[i]
					}
					most = max(most, sum)
					if i > 0 && curve.Time[i] <= curve.Time[i-1] {
						t.Errorf("rank %d: time %d after %d", r, curve.Time[i], curve.Time[i-1])
					}
					if last := len(curve.Time) - 1; (i == 0 || i == last) && curve.Plan[i] != s.book.recorders[r].scripts[0].base.Sum() && i == last {
						t.Errorf("rank %d ends with %d bytes in the plan", r, curve.Plan[i])
					}
				}
				if most > arenas {
					t.Errorf("rank %d has %d bytes in use, the arenas %d", r, most, arenas)
				}
				if most != rank.Peak.Bytes || got[r].Peak != most {
					t.Errorf("rank %d: curve %d, peak %d, counted %d", r, most, rank.Peak.Bytes, got[r].Peak)
				}
				held := rank.Peak.Rest
				for _, h := range rank.Peak.Holders {
					held += h.Bytes
					if (h.First < 0) != (h.Phase == PhaseResident) || h.Line == "" {
						t.Errorf("rank %d: %+v", r, h)
					}
					shared := h.Kind == "workspace" || h.Kind == "communication" // with all ops: no one moves it
					if h.First < 0 && !strings.HasPrefix(h.Kind, "gradient") && (h.Line == betweenSteps) != shared {
						t.Errorf("rank %d: %s of kind %s lives all the time, its line is %q", r, h.Name, h.Kind, h.Line)
					}
				}
				if held != rank.Peak.Bytes || len(rank.Peak.Holders) > maxHolders {
					t.Errorf("rank %d: holders have %d of %d bytes", r, held, rank.Peak.Bytes)
				}
				if live := s.book.recorders[r].live.Load(); live != cost.Live.Sum()-transient(s.program.Train, cost.PeakOp) {
					t.Errorf("rank %d has %d bytes in use after the step", r, live)
				}
			}
		})
	}
}

// transient is the transient bytes that live at an op.
func transient(p *zero.Plan, op int) (n int64) {
	for i := range p.Bufs {
		if b := &p.Bufs[i]; !b.Resident && b.First >= 0 && b.First <= op && op <= b.Last {
			n += b.Bytes()
		}
	}
	return n
}

// One op after the other, what is in use is what the plan says.
func TestCurveInListOrderIsThePlans(t *testing.T) {
	s := newSim(t, 1)
	p, rec := s.program.Train, s.book.Rank(0)
	for i := range p.Ops {
		if p.Ops[i].Lane == zero.Host {
			continue
		}
		rec.Op(p, i, false)
		s.now += time.Microsecond
		if got, want := rec.Position().Live, liveBy(rec.scripts[0], i); got != want {
			t.Errorf("%s: %d bytes in use, want %d", p.Line(i), got, want)
		}
		rec.Op(p, i, true)
	}
}

// liveBy counts by the rule alone: a buffer lives from the start of its first op to the end of its last.
func liveBy(s *script, op int) int64 {
	n := s.base.Sum()
	for b := range s.first {
		if s.first[b] >= 0 && s.first[b] <= op && op <= s.last[b] {
			n += s.plan.Bufs[b].Bytes()
		}
	}
	return n
}

func TestSplitAddsUp(t *testing.T) {
	s := newSim(t, 1)
	begin := s.now
	ranks := s.step(1)
	for r, x := range ranks {
		if got, want := x.Split.Sum(), s.now-begin; got != want {
			t.Errorf("rank %d: parts are %v, the step took %v", r, got, want)
		}
		if x.Split.Compute == 0 || x.Split.Comm == 0 {
			t.Errorf("rank %d: %+v", r, x.Split)
		}
	}
	if fast, slow := ranks[0].Split, ranks[1].Split; fast.Wait <= slow.Wait || fast.Compute >= slow.Compute {
		t.Errorf("rank 0 is quicker, so it waits: %+v, %+v", fast, slow)
	}
}

// Time outside the ops is waiting.
func TestSplitOfTimeOutsideOps(t *testing.T) {
	s := newSim(t, 1)
	want := s.step(1)[0].Split
	s.step(2)
	times := s.schedule(s.now)
	for r := range times {
		copy(s.book.recorders[r].times, times[r])
	}
	w := window(times)
	got := s.book.EndStep(3, time.Duration(w.end-w.start)+time.Second)[0].Split
	want.Wait += time.Second
	if got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

func TestWithout(t *testing.T) {
	for _, c := range []struct {
		name       string
		a, b, want []opTime
	}{
		{"nothing to take", []opTime{{1, 5}}, nil, []opTime{{1, 5}}},
		{"all", []opTime{{1, 5}}, []opTime{{0, 9}}, nil},
		{"the middle", []opTime{{1, 9}}, []opTime{{3, 4}, {6, 7}}, []opTime{{1, 3}, {4, 6}, {7, 9}}},
		{"edges", []opTime{{1, 5}, {6, 9}}, []opTime{{0, 2}, {4, 7}}, []opTime{{2, 4}, {7, 9}}},
		{"touching", []opTime{{1, 5}}, []opTime{{0, 1}, {5, 9}}, []opTime{{1, 5}}},
		{"one over several", []opTime{{1, 2}, {3, 4}, {5, 6}}, []opTime{{0, 10}}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := without(c.a, c.b)
			if len(got) != len(c.want) {
				t.Fatalf("%v, want %v", got, c.want)
			}
			for i := range got {
				if got[i] != c.want[i] {
					t.Errorf("%v, want %v", got, c.want)
				}
			}
		})
	}
}

// Every pause has a reason that the plan names, and the slow rank is found out.
func TestWaits(t *testing.T) {
	s, r := reported(t)
	if len(r.Waits) == 0 {
		t.Fatal("no waits")
	}
	peers := 0
	for i, w := range r.Waits {
		if i > 0 && w.Time > r.Waits[i-1].Time {
			t.Errorf("wait %d is longer than the one before", i)
		}
		op := &s.program.Train.Ops[w.Op]
		if op.Lane != zero.Compute || w.Counts < 1 || w.Counts > 2 {
			t.Errorf("%+v", w)
		}
		if w.For >= 0 {
			named := false
			for _, d := range op.After {
				named = named || d == w.For
			}
			if !named {
				t.Errorf("%s does not wait for %s", s.program.Train.Line(w.Op), s.program.Train.Line(w.For))
			}
		}
		if w.Peer == w.Rank {
			t.Errorf("rank %d waits for itself", w.Rank)
		}
		if w.Peer >= 0 {
			peers++
			if w.Rank != 0 || w.Peer != 1 {
				t.Errorf("rank 1 is the slow one: %+v", w)
			}
		}
	}
	if peers == 0 {
		t.Error("no wait is put down to the slow rank")
	}
}

func TestRecordingAllocatesNothing(t *testing.T) {
	s := newSim(t, 1)
	rec, p := s.book.Rank(0), s.program.Train
	span := memory.Span{Kind: memory.Gathered, Name: "h.0", Bytes: 8}
	if n := testing.AllocsPerRun(100, func() {
		for i := range p.Ops {
			if p.Ops[i].Lane != zero.Host {
				rec.Op(p, i, false)
				rec.Op(p, i, true)
			}
		}
		rec.Op(s.program.Eval, 0, false)
		rec.Begin(span)
		rec.End(span)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestPosition(t *testing.T) {
	s := newSim(t, 1)
	rec := s.book.Rank(1)
	if p := rec.Position(); p.Mode != "" || len(p.Lanes) != int(zero.Host) || p.Lanes[0].Op != -1 {
		t.Errorf("before the first op: %+v", p)
	}
	rec.Op(s.program.Train, 4, false)
	p := rec.Position()
	if p.Mode != "train" || p.Ops != len(s.program.Train.Ops) || p.Lanes[s.program.Train.Ops[4].Lane] != (LanePosition{
		Lane: s.program.Train.Ops[4].Lane.String(), Op: 4, Line: s.program.Train.Line(4), Busy: true}) {
		t.Errorf("%+v", p)
	}
	rec.Op(s.program.Eval, 1, true)
	if l := rec.Position().Lanes[s.program.Eval.Ops[1].Lane]; l.Busy || l.Op != 1 {
		t.Errorf("%+v", l)
	}
}

// A page stands alone, whatever the names in it are.
func TestPageStandsAlone(t *testing.T) {
	s, _ := reported(t)
	dir := filepath.Join(t.TempDir(), "a", "b")
	if err := s.book.WriteDir(dir, about, Process{}); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(PagePath(dir))
	if err != nil {
		t.Fatal(err)
	}
	page := string(raw)
	if strings.Contains(page, "http://") || strings.Contains(page, `src="`) || strings.Contains(page, "@import") || strings.Contains(page, "url(") {
		t.Error("the page asks for something from elsewhere")
	}
	if strings.Contains(page, "{{") {
		t.Error("a mark is left")
	}
	if n := strings.Count(page, "</script>"); n != 4 {
		t.Errorf("%d scripts end, want 4: a name broke out", n)
	}
	_, rest, _ := strings.Cut(page, `id="data">`)
	text, _, _ := strings.Cut(rest, "</script>")
	var r Report
	if err := json.Unmarshal([]byte(text), &r); err != nil || r.Facts[0].Value != about.Facts[0].Value {
		t.Errorf("data: %v, %+v", err, r.Facts)
	}
	for _, name := range []string{MemoryFile, TraceFile} {
		raw, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !json.Valid(raw) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
}

func TestReportWithoutSteps(t *testing.T) {
	s := newSim(t, 3)
	r := s.book.Report(Subject{}, Process{})
	if len(r.Steps) != 0 || len(r.Ranks) != 2 || r.Ranks[0].Peak.Op != -1 {
		t.Errorf("%+v", r)
	}
	raw, err := json.Marshal(r)
	if err != nil || strings.Contains(string(raw), "null") {
		t.Errorf("lists that are null, which scripts trip over: %v", err)
	}
}

func TestThinKeepsPeaks(t *testing.T) {
	var list []moment
	for i := range 10001 {
		m := moment{at: int64(i)}
		m.live[memory.Activation] = int64(i % 10)
		if i == 7777 {
			m.live[memory.Activation] = 99
		}
		list = append(list, m)
	}
	got := thin(list, 100)
	if len(got) > 100 || got[0] != list[0] || got[len(got)-1] != list[10000] || highest(got).at != 7777 {
		t.Errorf("%d moments, highest %+v", len(got), highest(got))
	}
	for i := 1; i < len(got); i++ {
		if got[i].at <= got[i-1].at {
			t.Fatalf("moment %d is not after its predecessor", i)
		}
	}
}

// Of plans of very many ops fewer steps are kept.
func TestBookIsBounded(t *testing.T) {
	s := newSim(t, 1<<20)
	if n := len(s.book.ring) * 2 * len(s.program.Train.Ops); n > 2*maxTimes {
		t.Errorf("%d ops are kept", n)
	}
}

func BenchmarkRecorderOp(b *testing.B) {
	s := newSim(&testing.T{}, 1)
	rec := newRecorder(Since(time.Now()), s.book.recorders[0].scripts, make([]opTime, len(s.program.Train.Ops)))
	for b.Loop() {
		rec.Op(s.program.Train, 4, false)
		rec.Op(s.program.Train, 4, true)
	}
}

func BenchmarkEndStep(b *testing.B) {
	s := newSim(&testing.T{}, 1)
	times := s.schedule(0)
	for b.Loop() {
		for r := range times {
			copy(s.book.recorders[r].times, times[r])
		}
		s.book.EndStep(1, 0)
	}
}
