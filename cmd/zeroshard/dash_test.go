package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"zeroshard/report"
)

func TestMemoryReport(t *testing.T) {
	dir := empty(t)
	got := execute(micro(t, "--ranks", "3", "--steps", "5", "--device-memory", "64MiB", "--quiet", "--out", "run", "--summary", "s.json", "--memory-report", "a/report")...)
	if got.code != 0 {
		t.Fatal(got.stderr)
	}
	if names, want := files(t, filepath.Join(dir, "a", "report")), []string{"memory.html", "memory.json", "trace.json"}; !slices.Equal(names, want) {
		t.Errorf("files %v, want %v", names, want)
	}
	raw, err := os.ReadFile("a/report/memory.json")
	if err != nil {
		t.Fatal(err)
	}
	var r report.Report
	if err := json.Unmarshal(raw, &r); err != nil {
		t.Fatal(err)
	}
	s := readSummary(t, "s.json")
	if len(r.Steps) != reportedSteps || r.Steps[2].Step != 5 || r.Limit != 64<<20 || len(r.Ranks) != 3 {
		t.Fatalf("steps %+v, limit %d, %d ranks", r.Steps, r.Limit, len(r.Ranks))
	}
	for i, rank := range r.Ranks {
		if rank.Used != s.Memory[i].UsedPeak || rank.Planned != s.Memory[i].PlannedPeak {
			t.Errorf("rank %d: planned %d, used %d, the summary has %+v", i, rank.Planned, rank.Used, s.Memory[i])
		}
		if rank.Peak.Bytes <= 0 || rank.Peak.Bytes > rank.Used || len(rank.Peak.Holders) != 10 {
			t.Errorf("rank %d: peak %d with %d holders", i, rank.Peak.Bytes, len(rank.Peak.Holders))
		}
		for _, c := range rank.Curves {
			for at := range c.Time {
				sum := int64(0)
				for _, column := range c.Kind {
					sum += column[at]
				}
				if sum > rank.Used {
					t.Fatalf("rank %d has %d bytes in use and %d reserved", i, sum, rank.Used)
				}
			}
		}
	}
	if r.Process.Resident < r.Arenas/2 || r.Arenas != 3*s.Memory[0].UsedPeak {
		t.Errorf("resident %d, arenas %d", r.Process.Resident, r.Arenas)
	}
}

func TestMetrics(t *testing.T) {
	empty(t)
	if got := execute(micro(t, "--ranks", "2", "--eval-every", "2", "--quiet", "--out", "run", "--summary", "s.json")...); got.code != 0 {
		t.Fatal(got.stderr)
	}
	h, err := report.ReadMetrics("run")
	if err != nil {
		t.Fatal(err)
	}
	s := readSummary(t, "s.json")
	if len(h) != 3 {
		t.Fatalf("%d steps, want 3", len(h))
	}
	for i, step := range h {
		if step.Step != i+1 || float64(step.Loss) != float64(s.Losses[i]) || step.LR <= 0 || step.Norm <= 0 || step.Tokens == 0 || step.Resident == 0 {
			t.Errorf("%+v", step)
		}
		if (step.ValLoss != nil) != (i > 0) {
			t.Errorf("step %d: validation loss %v", i+1, step.ValLoss)
		}
		for r, p := range step.Split {
			if sum := p.ComputeMS + p.CommMS + p.IOMS + p.WaitMS; math.Abs(float64(sum-step.StepMS)) > 0.01 {
				t.Errorf("step %d, rank %d: the parts are %v ms, the step %v", i+1, r, sum, step.StepMS)
			}
			if step.Memory[r].Used != s.Memory[r].UsedPeak || step.Memory[r].Peak > step.Memory[r].Used {
				t.Errorf("step %d, rank %d: %+v", i+1, r, step.Memory[r])
			}
		}
	}
	if *h[2].ValLoss != report.Number(s.ValLoss) {
		t.Errorf("validation loss %v, the summary has %v", *h[2].ValLoss, s.ValLoss)
	}
}

// safeBuffer is written by a command while a test reads it.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// address waits for the address that a command prints.
func address(t *testing.T, out *safeBuffer) string {
	t.Helper()
	for range 1000 {
		if _, rest, ok := strings.Cut(out.String(), "http://"); ok && strings.ContainsAny(rest, " \n") {
			return "http://" + strings.FieldsFunc(rest, func(r rune) bool { return r == ' ' || r == '\n' })[0]
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("no address in %q", out.String())
	return ""
}

// stream reads a run's events to the end.
func stream(t *testing.T, url string) string {
	t.Helper()
	res, err := http.Get(url + "events")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The live page shows every step, where each rank stands, and the end of the run.
func TestTrainDash(t *testing.T) {
	empty(t)
	var stderr safeBuffer
	code := make(chan int, 1)
	go func() {
		code <- Execute(micro(t, "--steps", "200", "--eval-every", "0", "--ranks", "2", "--out", "run", "--sample", "0", "--dash", "127.0.0.1:0"), strings.NewReader(""), io.Discard, &stderr)
	}()
	text := stream(t, address(t, &stderr))
	if c := <-code; c != 0 {
		t.Fatalf("exit code %d: %s", c, stderr.String())
	}
	for _, want := range []string{"event: run\ndata: {", `"ranks":2,"steps":200`, `data: {"step":1,"loss":`, `data: {"step":200,"loss":`, "event: val\n", "event: end\ndata: {\"error\":\"\"}"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q among the events", want)
		}
	}
}

func TestDashShowsAFinishedRun(t *testing.T) {
	empty(t)
	if got := execute(micro(t, "--quiet", "--out", "run")...); got.code != 0 {
		t.Fatal(got.stderr)
	}
	var out safeBuffer
	stop, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- showRun(&out, "run", "127.0.0.1:0", stop) }()
	text := stream(t, address(t, &out))
	for _, want := range []string{"micro, stage 3, 2 ranks", `data: {"step":3,"loss":`, "event: val\n", "event: end\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	close(stop)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A run that still goes is followed.
func TestDashFollowsARun(t *testing.T) {
	empty(t)
	if got := execute(micro(t, "--quiet", "--out", "run")...); got.code != 0 {
		t.Fatal(got.stderr)
	}
	summary, metrics := filepath.Join("run", "summary.json"), filepath.Join("run", report.MetricsFile)
	all, err := os.ReadFile(metrics)
	if err != nil {
		t.Fatal(err)
	}
	first := bytes.IndexByte(all, '\n') + 1
	if err := os.WriteFile(metrics, all[:first+20], 0o644); err != nil { // in the middle of the second line
		t.Fatal(err)
	}
	if err := os.Rename(summary, "summary"); err != nil {
		t.Fatal(err)
	}
	var out safeBuffer
	stop, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- showRun(&out, "run", "127.0.0.1:0", stop) }()
	url := address(t, &out)
	f, err := os.OpenFile(metrics, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(all[first+20:]); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename("summary", summary); err != nil {
		t.Fatal(err)
	}
	if text := stream(t, url); strings.Count(text, "event: step\n") != 3 {
		t.Errorf("want three steps in\n%s", text)
	}
	close(stop)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A run's last line says how it ended, and the page shows that.
func TestDashShowsHowARunEnded(t *testing.T) {
	empty(t)
	c := start(t, "--steps", "10000000", "--eval-every", "0", "--out", "stopped")
	c.until(t, "step ")
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	c.end()
	c = start(t, "--steps", "10000000", "--eval-every", "0", "--out", "killed")
	c.until(t, "step ")
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	c.end()
	execute(micro(t, "--quiet", "--out", "well")...)
	execute(micro(t, "--steps", "30", "--lr", "1e30", "--clip", "0", "--optimizer", "sgd", "--quiet", "--out", "failed")...)
	execute(micro(t, "--quiet", "--out", "old")...)
	long := time.Now().Add(-time.Hour)
	metrics := filepath.Join("old", report.MetricsFile)
	all, err := os.ReadFile(metrics)
	if err == nil {
		err = errors.Join(os.WriteFile(metrics, bytes.TrimSuffix(all, []byte("{\"ended\":\"ok\"}\n")), 0o644),
			os.Chtimes("old/summary.json", long, long), os.Chtimes("killed/"+report.MetricsFile, long, long))
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"well": "event: end\ndata: {\"error\":\"\"}", "old": "event: end\ndata: {\"error\":\"\"}", "stopped": "event: end\ndata: {\"error\":\"stopped by interrupt; step ",
		"failed": "event: end\ndata: {\"error\":\"failed: train: ", "killed": fmt.Sprintf("event: stale\ndata: {\"since_ms\":%d}", long.UnixMilli()),
	} {
		t.Run(name, func(t *testing.T) {
			var out safeBuffer
			stop, ended := make(chan struct{}), make(chan error, 1)
			go func() { ended <- showRun(&out, name, "127.0.0.1:0", stop) }()
			url := address(t, &out)
			stopping := sync.OnceFunc(func() { close(stop) })
			if name == "killed" { // its stream ends with the server: it may go on
				time.AfterFunc(200*time.Millisecond, stopping)
			}
			text := stream(t, url)
			stopping()
			if !strings.Contains(text, want) {
				t.Errorf("no %q in %s", want, text)
			}
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}

// The pages say what rests outside device memory, where something does.
func TestOffloadIsAFact(t *testing.T) {
	empty(t)
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"none": {nil, ""},
		"part": {[]string{"--offload-optimizer", "host", "--offload-ratio", "0.5", "--offload-param", "file", "--offload-path", t.TempDir()},
			"optimizer state on host (ratio 0.5), parameters on file"},
	} {
		if got := execute(micro(t, append(c.args, "--quiet", "--out", name, "--memory-report", name+"-report")...)...); got.code != 0 {
			t.Fatal(got.stderr)
		}
		head, err := headOf(name)
		raw, readErr := os.ReadFile(name + "-report/memory.json")
		var r report.Report
		if err := errors.Join(err, readErr, json.Unmarshal(raw, &r)); err != nil {
			t.Fatal(err)
		}
		for _, facts := range [][]report.Fact{head.Facts, r.Facts} {
			at := slices.IndexFunc(facts, func(f report.Fact) bool { return f.Name == "offload" })
			if (at >= 0) != (c.want != "") || at >= 0 && facts[at].Value != c.want {
				t.Errorf("%s: %v", name, facts)
			}
		}
	}
}

// A run may be silent for twenty of its steps, but never for less than a minute.
func TestPatience(t *testing.T) {
	for _, c := range []struct {
		name  string
		steps []report.Number
		want  time.Duration
	}{
		{"no step yet", nil, time.Minute}, {"short steps", []report.Number{10, 20}, time.Minute},
		{"long steps", []report.Number{5000, 7000, report.Number(math.NaN()), report.Number(math.Inf(1))}, 2 * time.Minute},
	} {
		var p pace
		for _, ms := range c.steps {
			p.add(ms)
		}
		if got := p.patience(); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// A run that fails leaves the report of what it did before.
func TestReportOfARunThatFails(t *testing.T) {
	empty(t)
	got := execute(micro(t, "--steps", "30", "--lr", "1e30", "--clip", "0", "--optimizer", "sgd", "--quiet", "--out", "run", "--memory-report", "report")...)
	if got.code != 1 {
		t.Fatalf("code %d: %s", got.code, got.stderr)
	}
	raw, err := os.ReadFile("report/memory.json")
	if err != nil || !json.Valid(raw) {
		t.Errorf("%v", err)
	}
	h, err := report.ReadMetrics("run")
	if err != nil || len(h) == 0 || h[len(h)-1].Skipped == "" {
		t.Errorf("%d steps, %v", len(h), err)
	}
}
