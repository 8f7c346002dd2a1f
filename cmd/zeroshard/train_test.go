package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"zeroshard/internal/golden"
)

func TestTrainTellsAndLeaves(t *testing.T) {
	dir := empty(t)
	got := execute(micro(t, "--ranks", "3", "--out", "run", "--summary", "s.json", "--sample", "5", "--eval-every", "2")...)
	if got.code != 0 {
		t.Fatalf("exit code %d:\n%s", got.code, got.stderr)
	}
	for _, want := range []string{"micro: 2 layers × 2 heads × 24", "3, stage 3", "plan ", "operations a step", "step 1/3  loss ", "step 3/3  loss ",
		"step 2/3  validation loss ", "step 3/3  validation loss "} {
		if !strings.Contains(got.stderr, want) {
			t.Errorf("stderr lacks %q:\n%s", want, got.stderr)
		}
	}
	for _, want := range []string{"planned peak", "used peak", "rank 2", "parameter", "activation", "the model writes"} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("stdout lacks %q:\n%s", want, got.stdout)
		}
	}
	if want := []string{"run", "run/checkpoints", "run/checkpoints/latest", "run/checkpoints/step-00000003", "run/checkpoints/step-00000003/manifest.json",
		"run/checkpoints/step-00000003/rank-00000.safetensors", "run/checkpoints/step-00000003/rank-00001.safetensors", "run/checkpoints/step-00000003/rank-00002.safetensors",
		"run/metrics.jsonl", "run/settings.json", "run/summary.json", "s.json"}; !slices.Equal(files(t, dir), want) {
		t.Errorf("files %v, want %v", files(t, dir), want)
	}
	s := readSummary(t, "s.json")
	if s.Stage != 3 || s.Ranks != 3 || s.Steps != 3 || len(s.Losses) != 3 || s.ValLoss == 0 || len(s.StateSHA256) != 64 || s.TokensPerS <= 0 ||
		len(s.PlanSHA256) != 64 || len(s.Memory) != 3 || s.Wire.AllGather == 0 || s.Wire.ReduceScatter == 0 || s.Wire.Scalars == 0 {
		t.Errorf("summary %+v", s)
	}
	for r, m := range s.Memory {
		var sum int64
		for _, n := range m.ByKind {
			sum += n
		}
		if m.Rank != r || m.PlannedPeak != m.UsedPeak || sum != m.UsedPeak {
			t.Errorf("rank %d: planned %d, used %d, by kind %d", m.Rank, m.PlannedPeak, m.UsedPeak, sum)
		}
	}
	a, _ := os.ReadFile("s.json")
	b, _ := os.ReadFile("run/summary.json")
	if string(a) != string(b) {
		t.Error("--summary and the run folder's summary differ")
	}
}

// The plan promises what the run then uses and sends, and names it by the same hash.
func TestPlanAgreesWithTrain(t *testing.T) {
	empty(t)
	for _, stage := range []string{"0", "1", "2", "3"} {
		args := []string{"--model", "micro", "--ranks", "3", "--stage", stage}
		if got := execute(append(micro(t, "--quiet", "--out", "run"+stage, "--summary", "s.json"), args...)...); got.code != 0 {
			t.Fatalf("stage %s: %s", stage, got.stderr)
		}
		s := readSummary(t, "s.json")
		got := execute(append([]string{"plan", "--json"}, args...)...)
		var p figures
		if err := json.Unmarshal([]byte(got.stdout), &p); err != nil {
			t.Fatalf("stage %s: %v: %s", stage, err, got.stderr)
		}
		if p.Peak != s.Memory[0].UsedPeak || p.Wire != s.Wire || p.PlanSHA256 != s.PlanSHA256 {
			t.Errorf("stage %s: planned %d bytes, %+v, %s; used %d, %+v, %s", stage, p.Peak, p.Wire, p.PlanSHA256,
				s.Memory[0].UsedPeak, s.Wire, s.PlanSHA256)
		}
	}
}

func TestFlagsWithoutBitsKeepThem(t *testing.T) {
	empty(t)
	hash := func(args ...string) string {
		t.Helper()
		if got := execute(micro(t, append(args, "--quiet", "--summary", "s.json")...)...); got.code != 0 {
			t.Fatalf("%v: %s", args, got.stderr)
		}
		return readSummary(t, "s.json").StateSHA256
	}
	want := hash("--stage", "0", "--ranks", "1")
	for _, args := range []string{"--stage 3 --ranks 3", "--stage 1 --ranks 2 --window 1", "--ranks 4 --replicas 2", "--threads 2", "--prefetch 0",
		"--recompute all", "--recompute 2", "--keep-last", "--persistence-threshold 100", "--device-memory 64MiB", "--eval-every 1", "--memory-report report", "--dash 127.0.0.1:0"} {
		if got := hash(strings.Fields(args)...); got != want {
			t.Errorf("%s changed the bits", args)
		}
	}
	for _, args := range []string{"--seed 8", "--lr 2e-3", "--optimizer sgd", "--clip 0.01", "--micro-batch 2", "--seq 8", "--dropout 0.1",
		"--schedule constant", "--warmup 0", "--weight-decay 0", "--beta1 0.8", "--beta2 0.9", "--steps 4"} {
		if got := hash(strings.Fields(args)...); got == want {
			t.Errorf("%s did not change the bits", args)
		}
	}
}

// Leaving early is a prefix of the whole run: the schedule follows --steps.
func TestStopAtIsAPrefix(t *testing.T) {
	empty(t)
	losses := func(out string, args ...string) any {
		got := execute(micro(t, append(args, "--steps", "5", "--quiet", "--out", out, "--summary", "s.json")...)...)
		if got.code != 0 {
			t.Fatal(got.stderr)
		}
		return readSummary(t, "s.json").Losses[:3]
	}
	a, b := losses("a"), losses("b", "--stop-at", "3")
	if x, y := mustJSON(t, a), mustJSON(t, b); x != y {
		t.Errorf("losses %s, stopped at 3: %s", x, y)
	}
	if n := readSummary(t, "b/summary.json").Steps; n != 3 {
		t.Errorf("%d steps, want 3", n)
	}
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestQuietSaysNothing(t *testing.T) {
	empty(t)
	if got := execute(micro(t, "--quiet")...); got.code != 0 || got.stdout != "" || got.stderr != "" {
		t.Errorf("%+v", got)
	}
}

func TestLastOfRepeatedFlagsWins(t *testing.T) {
	empty(t)
	got := execute(micro(t, "--ranks", "0", "--ranks", "1", "--stage", "9", "--stage", "2", "--data", "/nonexistent", "--data", tokens(t, 300), "--quiet", "--summary", "s.json")...)
	if got.code != 0 {
		t.Fatal(got.stderr)
	}
	if s := readSummary(t, "s.json"); s.Ranks != 1 || s.Stage != 2 {
		t.Errorf("ranks %d, stage %d", s.Ranks, s.Stage)
	}
}

func TestDefaultRunFolder(t *testing.T) {
	dir := empty(t)
	for range 2 { // in one second
		if got := execute(micro(t, "--quiet")...); got.code != 0 {
			t.Fatal(got.stderr)
		}
	}
	runs, err := filepath.Glob(filepath.Join(dir, "runs", "micro-*", "summary.json"))
	if err != nil || len(runs) != 2 {
		t.Errorf("runs %v (%v), want two", runs, err)
	}
}

func TestHelp(t *testing.T) {
	for _, name := range []string{"", "train", "generate", "eval", "dash", "plan", "version"} {
		t.Run("zeroshard "+name, func(t *testing.T) {
			args := []string{"--help"}
			if name != "" {
				args = []string{name, "--help"}
			}
			got := execute(args...)
			if got.code != 0 || got.stderr != "" {
				t.Errorf("code %d, stderr %q", got.code, got.stderr)
			}
			golden.Check(t, "testdata/help-"+name+".txt", got.stdout)
		})
	}
}

// Whoever reads a flag's help learns whether it can change the result.
func TestHelpSpeaksOfBits(t *testing.T) {
	outside := []string{"out", "summary", "quiet", "json", "ops", "stages", "fit"} // say how the result is shown, not what it is
	for _, c := range []*cobra.Command{newTrain(), newPlan()} {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			says := strings.HasSuffix(f.Usage, unchanged) || strings.HasSuffix(f.Usage, changed)
			if says == slices.Contains(outside, f.Name) {
				t.Errorf("%s --%s: help ends with a word on bits: %v", c.Name(), f.Name, says)
			}
		})
	}
}

func TestPlanText(t *testing.T) {
	got := execute("plan", "--model", "micro", "--ranks", "2", "--threads", "1", "--global-batch", "2")
	ops, figures, _ := strings.Cut(got.stdout, "\n\n")
	golden.Check(t, "testdata/plan-micro.txt", ops+"\n")
	for _, want := range []string{"17,208 parameters, 35 operations a step", "model state         155,648     152 KiB", "  reduce-scatter     38,912"} {
		if !strings.Contains(figures, want) { // the peak has the kernels' scratch in it, which depends on the CPU
			t.Errorf("no %q in\n%s", want, figures)
		}
	}
	long := execute("plan", "--model", "gpt2")
	if n := strings.Count(long.stdout, "\n"); n > 40 {
		t.Errorf("a long plan is printed whole: %d lines", n)
	}
	all := execute("plan", "--model", "gpt2", "--ops")
	if !strings.Contains(all.stdout, "backward       h.11 mb3") {
		t.Error("--ops does not print every operation")
	}
}

func TestVersion(t *testing.T) {
	if got := execute("version"); got.code != 0 || !strings.HasPrefix(got.stdout, "zeroshard ") || !strings.Contains(got.stdout, "\ngo        go1.") {
		t.Errorf("%+v", got)
	}
	if got := execute("version", "--verbose"); !strings.Contains(got.stdout, "\nkernels   ") || !strings.Contains(got.stdout, "\ncpu       ") {
		t.Errorf("%+v", got)
	}
}

// A setting that --fit lists fits, and --stages shows what each stage needs.
func TestPlanFitAndStages(t *testing.T) {
	got := execute("plan", "--model", "tiny", "--fit", "8MiB")
	if got.code != 0 || !strings.Contains(got.stdout, "--stage 3 --ranks 8") || !strings.Contains(got.stdout, "--offload-optimizer host") {
		t.Errorf("exit %d:\n%s%s", got.code, got.stdout, got.stderr)
	}
	if got := execute("plan", "--model", "tiny", "--stage", "3", "--ranks", "8", "--device-memory", "8MiB", "--json"); got.code != 0 {
		t.Errorf("the first setting does not fit: %s", got.stderr)
	}
	if got := execute("plan", "--model", "tiny", "--fit", "1000"); got.code != exitNoFit || got.stdout != "" {
		t.Errorf("in 1000 bytes: exit %d, %s", got.code, got.stdout)
	}
	got = execute("plan", "--model", "gpt2", "--ranks", "4", "--stages")
	if got.code != 0 || !strings.Contains(got.stdout, "stage 3") || !strings.Contains(got.stdout, "model state") {
		t.Errorf("exit %d:\n%s%s", got.code, got.stdout, got.stderr)
	}
}

// What rests elsewhere changes no bit; what cannot is refused.
func TestTrainOffloaded(t *testing.T) {
	dir := t.TempDir()
	run := func(name string, args ...string) string {
		summary := filepath.Join(dir, name+".json")
		got := execute(micro(t, append(args, "--quiet", "--out", filepath.Join(dir, name), "--summary", summary)...)...)
		if got.code != 0 {
			t.Fatalf("%s: exit %d: %s", name, got.code, got.stderr)
		}
		return readSummary(t, summary).StateSHA256
	}
	want := run("plain")
	if got := run("optimizer", "--offload-optimizer", "host"); got != want {
		t.Errorf("optimizer state on the host: %s, want %s", got, want)
	}
	if got := run("both", "--offload-optimizer", "host", "--offload-param", "host"); got != want {
		t.Errorf("all on the host: %s, want %s", got, want)
	}
	for _, args := range [][]string{{"--stage", "0", "--offload-optimizer", "host"}, {"--stage", "2", "--offload-param", "host"},
		{"--offload-optimizer", "tape"}, {"--offload-optimizer", "file"}} {
		if got := execute(append([]string{"train", "--model", "micro"}, args...)...); got.code != exitUsage || !strings.Contains(got.stderr, "--offload") {
			t.Errorf("%v: exit %d: %s", args, got.code, got.stderr)
		}
	}
}

// The run folder is made by the run, so the summary may be asked for in it.
func TestSummaryInTheRunFolder(t *testing.T) {
	out := filepath.Join(t.TempDir(), "run")
	got := execute(micro(t, "--quiet", "--out", out, "--summary", filepath.Join(out, "s.json"))...)
	if got.code != 0 || got.stderr != "" {
		t.Fatalf("exit %d: %s", got.code, got.stderr)
	}
	if readSummary(t, filepath.Join(out, "s.json")).StateSHA256 != readSummary(t, filepath.Join(out, "summary.json")).StateSHA256 {
		t.Error("the two summaries differ")
	}
}
