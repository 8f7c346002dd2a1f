package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"zeroshard/checkpoint"
	"zeroshard/report"
	"zeroshard/train"
)

// ok runs a command line that must end well.
func ok(t *testing.T, args ...string) outcome {
	t.Helper()
	got := execute(args...)
	if got.code != 0 {
		t.Fatalf("%v: exit %d:\n%s", args, got.code, got.stderr)
	}
	return got
}

// refused runs a command line that must end with a code, and say in one place what is wrong.
func refused(t *testing.T, code int, says []string, args ...string) outcome {
	t.Helper()
	got := execute(args...)
	if got.code != code {
		t.Errorf("%v: exit %d, want %d:\n%s", args, got.code, code, got.stderr)
	}
	for _, want := range says {
		if !strings.Contains(got.stderr, want) {
			t.Errorf("%v: stderr lacks %q:\n%s", args, want, got.stderr)
		}
	}
	return got
}

func steps(t *testing.T, out string) []int {
	t.Helper()
	s, err := checkpoint.NewStore(checkpoint.OS{}, filepath.Join(out, checkpoint.Folder)).Steps()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// curve is the steps of a run's metrics, each once: step, loss, rate, norm.
func curve(t *testing.T, out string) (lines []string) {
	t.Helper()
	h, err := report.ReadMetrics(out)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range h {
		if s.Step != i+1 {
			t.Errorf("%s: line %d of the metrics is of step %d", out, i+1, s.Step)
		}
		lines = append(lines, fmt.Sprint(s.Step, s.Loss, s.LR, s.Norm, s.Tokens))
	}
	return lines
}

// A run is stopped, and goes on in another layout with nothing but --resume, before, at and after the point at which it has drawn as many
// tokens as the corpus has; its state, losses, rates and counts are those of a run that was never stopped, and its metrics have each step once.
func TestResumeIsNoInterruption(t *testing.T) {
	empty(t)
	data := tokens(t, 426) // 384 to train on, which is three steps of 8 sequences of 16
	args := []string{"train", "--model", "micro", "--data", data, "--steps", "6", "--warmup", "4", "--seed", "7", "--dropout", "0.1", "--eval-every", "2", "--save-every", "1", "--quiet"}
	ok(t, append(args, "--out", "whole", "--ranks", "1", "--stage", "0")...)
	want := readSummary(t, "whole/summary.json")
	m, err := checkpoint.ReadManifest(checkpoint.OS{}, "whole/checkpoints/step-00000003")
	if err != nil || m.Data.Sequences*16 != m.Data.Train || m.Tokens != 384 {
		t.Fatalf("%+v, %v: the corpus is to end at step 3", m.Data, err)
	}
	for at, layout := range []string{1: "--ranks 3 --stage 3", 2: "--ranks 8 --stage 1", 3: "--ranks 4 --replicas 2 --stage 2", 4: "--ranks 2 --stage 3 --offload-optimizer host --offload-param file --offload-path .",
		5: "--ranks 5 --stage 3 --persistence-threshold 100 --recompute all"} {
		if at == 0 {
			continue
		}
		out := fmt.Sprint("run", at)
		ok(t, append(append(args, "--out", out, "--stop-at", fmt.Sprint(at)), strings.Fields("--ranks 2")...)...)
		got := ok(t, append([]string{"train", "--out", out, "--resume", "--quiet=false", "--sample", "0"}, strings.Fields(layout)...)...)
		for _, says := range []string{fmt.Sprintf("resume     from step %d, saved at stage3 on 2 rank(s)", at), "step 6/6  loss ", "run        6 steps into " + out} {
			if !strings.Contains(got.stderr, says) {
				t.Errorf("%s: stderr lacks %q:\n%s", out, says, got.stderr)
			}
		}
		s := readSummary(t, out+"/summary.json")
		if s.StateSHA256 != want.StateSHA256 || s.ValLoss != want.ValLoss {
			t.Errorf("stopped at %d, then %s: state %s, validation %v; want %s, %v", at, layout, s.StateSHA256, s.ValLoss, want.StateSHA256, want.ValLoss)
		}
		if s.Steps != 6 || s.ResumedFrom != at || !slices.Equal(s.Losses, want.Losses[at:]) {
			t.Errorf("stopped at %d: %d steps, resumed from %d, losses %v, want %v", at, s.Steps, s.ResumedFrom, s.Losses, want.Losses[at:])
		}
		if got, want := curve(t, out), curve(t, "whole"); !slices.Equal(got, want) {
			t.Errorf("stopped at %d: metrics\n%s\nwant\n%s", at, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		if diff := ok(t, "checkpoint", "diff", "whole", out); !strings.Contains(diff.stdout, "the same bits: steps 6 and 6") {
			t.Error(diff.stdout)
		}
	}
	t.Run("interrupted after every step", func(t *testing.T) { // several resumes of a resume
		ok(t, append(args, "--out", "often", "--stop-at", "1")...)
		for at := 2; at <= 6; at++ {
			ok(t, "train", "--out", "often", "--resume", "--stop-at", fmt.Sprint(at), "--ranks", fmt.Sprint(at))
		}
		if s := readSummary(t, "often/summary.json"); s.StateSHA256 != want.StateSHA256 || s.ResumedFrom != 5 {
			t.Errorf("%+v", s)
		}
		if !slices.Equal(curve(t, "often"), curve(t, "whole")) {
			t.Error("other metrics")
		}
	})
	t.Run("a run that has ended", func(t *testing.T) {
		ok(t, "train", "--out", "whole", "--resume", "--ranks", "3", "--stage", "3")
		s := readSummary(t, "whole/summary.json")
		if s.StateSHA256 != want.StateSHA256 || s.Steps != 6 || len(s.Losses) != 0 || !slices.Equal(steps(t, "whole"), []int{1, 2, 3, 4, 5, 6}) {
			t.Errorf("%+v, steps %v", s, steps(t, "whole"))
		}
	})
}

// The same data under another name is the same data.
func TestResumeWithDataElsewhere(t *testing.T) {
	empty(t)
	ok(t, micro(t, "--out", "run", "--quiet", "--stop-at", "1")...)
	ok(t, "train", "--out", "run", "--resume", "--quiet", "--data", tokens(t, 500), "--stop-at", "2")
	ok(t, "train", "--out", "run", "--resume", "--quiet", "--stop-at", "3")
}

// One command line does for the first start and for every later one.
func TestResumeWithNothingSaved(t *testing.T) {
	empty(t)
	got := ok(t, micro(t, "--out", "run", "--resume", "--sample", "0")...)
	if !strings.Contains(got.stderr, "resume     nothing is saved in run: starting at step 0") || !slices.Equal(steps(t, "run"), []int{3}) {
		t.Errorf("steps %v:\n%s", steps(t, "run"), got.stderr)
	}
	fresh := readSummary(t, "run/summary.json")
	ok(t, micro(t, "--out", "other", "--quiet")...)
	if want := readSummary(t, "other/summary.json"); fresh.StateSHA256 != want.StateSHA256 || fresh.ResumedFrom != 0 {
		t.Errorf("%+v", fresh)
	}
	// A run that failed before its first save goes on as well: its steps are counted once.
	ok(t, micro(t, "--out", "unsaved", "--quiet", "--save-every", "0", "--stop-at", "2")...)
	ok(t, micro(t, "--out", "unsaved", "--quiet", "--resume")...)
	if !slices.Equal(curve(t, "unsaved"), curve(t, "run")) {
		t.Errorf("metrics %v, want %v", curve(t, "unsaved"), curve(t, "run"))
	}
}

// A run that was killed before its first save goes on with the settings that it had, not with the defaults.
func TestResumeWithNothingSavedKeepsSettings(t *testing.T) {
	empty(t)
	ok(t, micro(t, "--out", "run", "--quiet", "--save-every", "0", "--stop-at", "1", "--lr", "0.5")...)
	ok(t, "train", "--out", "run", "--resume", "--quiet", "--save-every", "1")
	ok(t, micro(t, "--out", "want", "--quiet", "--lr", "0.5")...)
	ok(t, "checkpoint", "diff", "run", "want")
}

// A run removes what lies among its steps and is none of its own: nobody may begin another there.
func TestRunsDoNotNest(t *testing.T) {
	empty(t)
	ok(t, micro(t, "--out", "run", "--quiet")...)
	for _, out := range []string{"run/checkpoints", "run/checkpoints/step-00000003", "run/checkpoints/step-00000099", "run/checkpoints/a/b"} {
		refused(t, exitUsage, []string{out, "among the steps of the run in"}, micro(t, "--out", out, "--quiet")...)
		refused(t, exitUsage, []string{out}, micro(t, "--out", out, "--quiet", "--resume")...)
	}
	ok(t, micro(t, "--out", "run/other", "--quiet")...)
}

// What cannot go on is refused with the documented code and says what to do; the run is as before.
func TestResumeRefusals(t *testing.T) {
	empty(t)
	ok(t, micro(t, "--out", "run", "--quiet", "--save-every", "1")...)
	before := files(t, "run")
	short, other := tokens(t, 300), micro(t)[4]
	changed := tokens(t, 500)
	flip(t, changed, 2*100)
	for _, c := range []struct {
		name string
		code int
		says string
		args []string
	}{
		{"a step that is not there", 3, "step 7 is not committed in run/checkpoints, there are 1, 2, 3", []string{"--out", "run", "--resume=7"}},
		{"a step in an empty folder", 3, "nothing is committed in none/checkpoints", []string{"--out", "none", "--resume=7"}},
		{"no step", 2, "--resume=x: want a step", []string{"--out", "run", "--resume=x"}},
		{"an empty step", 2, "--resume=: want a step", []string{"--out", "run", "--resume="}},
		{"step 0", 2, "--resume=0", []string{"--out", "run", "--resume=0"}},
		{"a negative step", 2, "--resume=-1: want a step", []string{"--out", "run", "--resume=-1"}},
		{"no run", 2, "say which run goes on: --out DIR", []string{"--resume"}},
		{"another model", 2, "--model tiny: run holds a model of 2 layers × 2 heads × 24, vocabulary 97", []string{"--out", "run", "--resume", "--model", "tiny"}},
		{"other data", 2, "the run was trained on 450 tokens with 50 held out (train.bin), these files have 270 and 30", []string{"--out", "run", "--resume", "--data", short}},
		{"other data of the same length", 2, "the run was trained on other tokens (train.bin): these files have as many, but not the same", []string{"--out", "run", "--resume", "--data", changed}},
		{"another optimizer", 2, "the checkpoint has optimizer state [m v]", []string{"--out", "run", "--resume", "--optimizer", "sgd", "--steps", "5"}},
		{"without --resume", 2, "run holds a run already: go on with it (--resume)", []string{"--model", "micro", "--data", other, "--out", "run"}},
		{"a start of its own over a saved run", 2, "--out", []string{"--out", "run", "--init-from", "run"}},
		{"negative interval", 2, "--save-every -1", []string{"--save-every", "-1"}},
		{"keep fewer than none", 2, "--keep-saves -1", []string{"--keep-saves", "-1"}},
		{"negative stop", 2, "--stop-at -1", []string{"--out", "run", "--resume", "--stop-at", "-1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			says := []string{c.says}
			if c.name == "a start of its own over a saved run" {
				says = nil
			}
			got := refused(t, c.code, says, append([]string{"train", "--quiet"}, c.args...)...)
			if n := strings.Count(got.stderr, "zeroshard: "); n != 1 {
				t.Errorf("%d complaints:\n%s", n, got.stderr)
			}
		})
	}
	if after := files(t, "run"); !slices.Equal(after, before) {
		t.Errorf("files %v, before %v", after, before)
	}
	if got := files(t, "."); slices.Contains(got, "none") {
		t.Errorf("files %v", got)
	}
}

// To go back sets later steps aside; a later --resume goes on with the new line.
func TestResumeGoesBack(t *testing.T) {
	empty(t)
	ok(t, micro(t, "--out", "run", "--steps", "6", "--quiet", "--save-every", "1")...)
	got := ok(t, "train", "--out", "run", "--resume=2", "--lr", "0.05", "--stop-at", "4", "--sample", "0", "--keep-saves", "0")
	for _, says := range []string{"resume     4 later step(s) are set aside: the run writes them anew", "resume     from step 2", "changed since step 2: --lr was 0.001, is 0.05"} {
		if !strings.Contains(got.stderr, says) {
			t.Errorf("stderr lacks %q:\n%s", says, got.stderr)
		}
	}
	if at := steps(t, "run"); !slices.Equal(at, []int{1, 2, 3, 4}) {
		t.Errorf("steps %v", at)
	}
	if latest, err := os.ReadFile("run/checkpoints/latest"); err != nil || string(latest) != "step-00000004\n" {
		t.Errorf("latest %q, %v", latest, err)
	}
	if n := len(curve(t, "run")); n != 4 {
		t.Errorf("the metrics have %d steps", n)
	}
	ls := ok(t, "checkpoint", "ls", "run")
	if !strings.Contains(ls.stderr, "not committed: run/checkpoints/.step-00000005.superseded") {
		t.Errorf("what was set aside is not told:\n%s", ls.stderr)
	}
	got = ok(t, "train", "--out", "run", "--resume", "--sample", "0")
	if !strings.Contains(got.stderr, "resume     from step 4") || strings.Contains(got.stderr, "changed since") || strings.Contains(got.stderr, "set aside") {
		t.Errorf("the second time:\n%s", got.stderr)
	}
	// Straight: two steps with one rate, then four with the other.
	ok(t, micro(t, "--out", "straight", "--steps", "6", "--quiet", "--save-every", "1", "--stop-at", "2")...)
	ok(t, "train", "--out", "straight", "--resume", "--lr", "0.05")
	if a, b := readSummary(t, "run/summary.json"), readSummary(t, "straight/summary.json"); a.StateSHA256 != b.StateSHA256 {
		t.Error("another state than that of a run that went straight")
	}
	if !slices.Equal(curve(t, "run"), curve(t, "straight")) {
		t.Error("other metrics than those of a run that went straight")
	}
}

// Flags that are not given are as they were, also when they had been changed by a resume; changed ones that change bits are told,
// others are not.
func TestResumeInherits(t *testing.T) {
	empty(t)
	if err := os.WriteFile("a, \"b\".txt", bytes.Repeat([]byte("some text. "), 60), 0o644); err != nil {
		t.Fatal(err)
	}
	ok(t, "train", "--model", "tiny", "--data", `"a, ""b"".txt"`, "--seq", "8", "--steps", "3", "--global-batch", "4", "--ranks", "4", "--replicas", "2", "--stage", "2", "--warmup", "2", "--schedule", "linear",
		"--recompute", "2", "--clip", "0.25", "--weight-decay", "0.3", "--seed", "9", "--device-memory", "1GiB", "--save-every", "1", "--keep-saves", "2", "--threads", "1", "--out", "run", "--quiet", "--stop-at", "1")
	got := ok(t, "train", "--out", "run", "--resume", "--sample", "0", "--stop-at", "2", "--clip", "0.5", "--ranks", "2", "--replicas", "1")
	for _, says := range []string{"a, \"b\".txt", "4 sequences of 8 tokens a step", "ranks      2, stage 2", "1 thread(s) each, 1 replica(s)", "decay 0.3, clip 0.5", "warm-up 2 steps, then linear", "seed 9",
		"the newest 2 are kept", "changed since step 1: --clip was 0.25, is 0.5"} {
		if !strings.Contains(got.stderr, says) {
			t.Errorf("stderr lacks %q:\n%s", says, got.stderr)
		}
	}
	if strings.Contains(got.stderr, "--ranks was") {
		t.Errorf("what changes no bit is told:\n%s", got.stderr)
	}
	got = ok(t, "train", "--out", "run", "--resume", "--sample", "0")
	if !strings.Contains(got.stderr, "clip 0.5") || !strings.Contains(got.stderr, "ranks      2, stage 2") || strings.Contains(got.stderr, "changed since") {
		t.Errorf("the second time:\n%s", got.stderr)
	}
	if at := steps(t, "run"); !slices.Equal(at, []int{2, 3}) {
		t.Errorf("steps %v", at)
	}
}

// What was taken over and has no meaning in the layout that is asked for is left out and told; what is given and has none is refused, as ever.
func TestResumeInAnotherLayout(t *testing.T) {
	dir := empty(t)
	from := map[string][]string{
		"files":    strings.Fields("--stage 3 --ranks 2 --offload-optimizer file --offload-param file --offload-path . --offload-ratio 0.5"),
		"host":     strings.Fields("--stage 3 --ranks 4 --offload-optimizer host --offload-param host"),
		"window":   strings.Fields("--stage 1 --ranks 2 --window 2"),
		"replicas": strings.Fields("--stage 2 --ranks 4 --replicas 2"),
	}
	var want string
	for i, c := range []struct{ from, to, left string }{
		{"files", "", ""},
		{"files", "--offload-optimizer none --offload-param host", "offload-ratio 0.5, offload-path ."},
		{"files", "--offload-param none", ""},
		{"files", "--stage 0", "offload-optimizer file, offload-param file, offload-ratio 0.5, offload-path ."},
		{"files", "--stage 2", "offload-param file, offload-ratio 0.5"},
		{"host", "--stage 1 --ranks 8", "offload-param host"},
		{"window", "--stage 3", "window 2"},
		{"window", "--stage 0 --ranks 1", ""},
		{"replicas", "--ranks 3", "replicas 2"},
		{"replicas", "--ranks 8", ""},
	} {
		out := fmt.Sprint("run", i)
		ok(t, append(micro(t, "--quiet", "--out", out, "--stop-at", "1"), from[c.from]...)...)
		got := ok(t, append([]string{"train", "--out", out, "--resume", "--sample", "0"}, strings.Fields(c.to)...)...)
		var left []string
		for line := range strings.Lines(got.stderr) {
			if text, is := strings.CutSuffix(line, " is left out: it has no meaning in this layout\n"); is {
				left = append(left, strings.TrimPrefix(text, "resume     --"))
			}
		}
		if strings.ReplaceAll(strings.Join(left, ", "), "-path "+dir, "-path .") != c.left { // settings name paths from anywhere
			t.Errorf("%s, then %s: left out are %q, want %q", c.from, c.to, left, c.left)
		}
		if hash := readSummary(t, out+"/summary.json").StateSHA256; want == "" {
			want = hash
		} else if hash != want {
			t.Errorf("%s, then %s: another state", c.from, c.to)
		}
	}
	refused(t, exitUsage, []string{"--window 2 has no meaning at stage 3"}, strings.Fields("train --out run7 --resume --stage 3 --ranks 2 --window 2")...)
	refused(t, exitUsage, []string{"--replicas 2 does not divide --ranks 3"}, strings.Fields("train --out run9 --resume --ranks 3 --replicas 2")...)
}

// A save that fails ends the run with the step that is saved, and what was committed before stays.
func TestSaveFails(t *testing.T) {
	t.Run("a file where steps go", func(t *testing.T) {
		empty(t)
		if err := errors.Join(os.Mkdir("run", 0o755), os.WriteFile("run/checkpoints", nil, 0o644)); err != nil {
			t.Fatal(err)
		}
		refused(t, exitFile, []string{"run/checkpoints", "not a directory"}, micro(t, "--out", "run", "--quiet")...)
	})
	t.Run("a folder in the place of a file", func(t *testing.T) {
		empty(t)
		if err := os.MkdirAll("run/checkpoints/latest/mine", 0o755); err != nil {
			t.Fatal(err)
		}
		refused(t, exitFile, []string{"latest", "step 1", "step 1 is saved, but the file that names the newest step cannot be written"}, micro(t, "--out", "run", "--quiet", "--save-every", "1")...)
		if at := steps(t, "run"); !slices.Equal(at, []int{1}) {
			t.Errorf("steps %v", at)
		}
		if err := os.RemoveAll("run/checkpoints/latest"); err != nil {
			t.Fatal(err)
		}
		ok(t, "checkpoint", "verify", "run")
		ok(t, "train", "--out", "run", "--resume")
		ok(t, micro(t, "--out", "whole", "--quiet")...)
		if a, b := readSummary(t, "run/summary.json"), readSummary(t, "whole/summary.json"); a.StateSHA256 != b.StateSHA256 || a.ResumedFrom != 1 {
			t.Errorf("resumed from %d to %s, want %s", a.ResumedFrom, a.StateSHA256, b.StateSHA256)
		}
		if !slices.Equal(curve(t, "run"), curve(t, "whole")) {
			t.Error("other metrics")
		}
	})
	t.Run("what has a step's name and is none makes way", func(t *testing.T) {
		empty(t)
		if err := errors.Join(os.MkdirAll("run/checkpoints/step-00000001/mine", 0o755), os.WriteFile("run/checkpoints/step-00000002", nil, 0o644)); err != nil {
			t.Fatal(err)
		}
		ok(t, micro(t, "--out", "run", "--quiet", "--save-every", "1")...)
		if at := steps(t, "run"); !slices.Equal(at, []int{1, 2, 3}) {
			t.Errorf("steps %v", at)
		}
		ok(t, "checkpoint", "verify", "run")
	})
}

// A damaged newest step is an error that names it, and an older one can be gone back to.
func TestResumeFromDamage(t *testing.T) {
	empty(t)
	ok(t, micro(t, "--out", "run", "--quiet", "--save-every", "1")...)
	want := readSummary(t, "run/summary.json").StateSHA256
	at := "run/checkpoints/step-00000003/rank-00001.safetensors"
	flip(t, at, -1)
	got := refused(t, exitFile, []string{"corrupt: " + at}, "train", "--out", "run", "--resume", "--quiet")
	if strings.Count(got.stderr, "zeroshard: ") != 1 {
		t.Errorf("said more than once:\n%s", got.stderr)
	}
	ok(t, "train", "--out", "run", "--resume=2", "--quiet")
	if s := readSummary(t, "run/summary.json"); s.StateSHA256 != want || s.ResumedFrom != 2 {
		t.Errorf("%+v", s)
	}
	ok(t, "checkpoint", "verify", "run")
}

// flip flips a bit of a file, of the last byte if at is -1.
func flip(t *testing.T, path string, at int) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if at < 0 {
		at += len(raw)
	}
	raw[at] ^= 4
	if err := os.WriteFile(path, raw, 0o644); err != nil {
		t.Fatal(err)
	}
}

// A second process is kept out of a run that goes on: neither resume nor prune get in. Then the first is killed, as it saves at every step,
// with state in files: what it leaves is cleaned up, the tier's files too (row 45 of the reports from the field), and the run goes on.
func TestKilledRunGoesOn(t *testing.T) {
	empty(t)
	tier := t.TempDir()
	args := []string{"--steps", "100000", "--eval-every", "0", "--save-every", "1", "--keep-saves", "3", "--out", "run", "--sample", "0"}
	c := start(t, append(args, "--offload-optimizer", "file", "--offload-path", tier)...)
	c.until(t, "step ")
	refused(t, exitUsage, []string{"another process trains in run"}, "train", "--out", "run", "--resume", "--quiet")
	refused(t, exitUsage, []string{"another process trains in run"}, "checkpoint", "prune", "run", "--keep", "1")
	waitFor(t, func() bool { return len(steps(t, "run")) > 0 })
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	c.end()
	at := steps(t, "run")
	if left, err := os.ReadDir(tier); err != nil || len(left) != 2 {
		t.Errorf("the killed run left %v in the tier, %v", left, err)
	}
	// As if it had been killed in the middle of a save and of a removal, whatever it was in.
	for _, name := range []string{".step-00099999.tmp", ".step-00000000.removed"} {
		if err := errors.Join(os.MkdirAll("run/checkpoints/"+name, 0o755), os.WriteFile("run/checkpoints/"+name+"/rank-00000.safetensors", []byte("half"), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	end := at[len(at)-1] + 3
	ok(t, "train", "--out", "run", "--resume", "--stop-at", fmt.Sprint(end), "--quiet")
	if left, err := os.ReadDir(tier); err != nil || len(left) > 0 {
		t.Errorf("left in the tier: %v, %v", left, err)
	}
	for _, name := range files(t, "run/checkpoints") {
		if strings.HasPrefix(name, ".") {
			t.Errorf("left over: %s", name)
		}
	}
	if got := steps(t, "run"); !slices.Equal(got, []int{end - 2, end - 1, end}) {
		t.Errorf("steps %v, want the last three up to %d", got, end)
	}
	ok(t, "checkpoint", "verify", "run")
	ok(t, micro(t, append(args, "--out", "whole", "--save-every", "0", "--stop-at", fmt.Sprint(end), "--quiet")...)...)
	if a, b := readSummary(t, "run/summary.json"), readSummary(t, "whole/summary.json"); a.StateSHA256 != b.StateSHA256 {
		t.Errorf("killed and resumed: another state after %d steps", end)
	}
	if !slices.Equal(curve(t, "run"), curve(t, "whole")) {
		t.Error("killed and resumed: other metrics")
	}
}

// waitFor waits until it is so.
func waitFor(t *testing.T, so func() bool) {
	t.Helper()
	for range 60_000 {
		if so() {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatal("it never came")
}

// herald sends a signal to this process when a text is written, and waits until it was heard.
type herald struct {
	mu    sync.Mutex
	text  string
	sig   syscall.Signal
	heard chan struct{}
	said  bytes.Buffer
}

func (h *herald) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("leaving after this step")) {
		close(h.heard)
		return len(p), nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.said.Write(p)
	if h.text != "" && bytes.Contains(p, []byte(h.text)) {
		h.text = ""
		if err := syscall.Kill(os.Getpid(), h.sig); err != nil {
			return 0, err
		}
		<-h.heard
	}
	return len(p), nil
}

// A signal at any moment of a run ends it in order: with the newest step saved where there is one, well where the run was at its end, and
// as a signal does where nothing was done yet.
func TestSignalsAtAnyMoment(t *testing.T) {
	empty(t)
	ok(t, micro(t, "--out", "whole", "--quiet", "--steps", "5", "--eval-every", "2")...)
	want := readSummary(t, "whole/summary.json").StateSHA256
	for i, c := range []struct {
		name, text string
		every      string
		code       int
		saved      int
	}{
		{"before the first step", "plan   ", "1", exitTerm, 0},
		{"before the first step where saves are on request", "plan   ", "0", exitTerm, 0},
		{"in the first step's report", "step 1/5  loss", "0", exitSaved, 1},
		{"in a validation", "step 2/5  validation", "0", exitSaved, 2},
		{"in a validation after a save", "step 2/5  validation", "1", exitSaved, 2},
		{"right after the last step", "step 5/5  loss", "1", exitOK, 5},
		{"right after the last step where saves are on request", "step 5/5  loss", "0", exitOK, 5},
		{"in the last validation", "step 5/5  validation", "1", exitOK, 5},
		{"before the sample", "used peak", "1", exitOK, 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			out := fmt.Sprint("run", i)
			h := &herald{text: c.text, sig: syscall.SIGTERM, heard: make(chan struct{})}
			args := micro(t, "--out", out, "--steps", "5", "--eval-every", "2", "--save-every", c.every, "--sample", "50")
			if code := Execute(args, strings.NewReader(""), h, h); code != c.code || h.text != "" {
				t.Errorf("exit %d, want %d; %q was said: %t\n%s", code, c.code, c.text, h.text == "", &h.said)
			}
			at := steps(t, out)
			if newest := append([]int{0}, at...)[len(at)]; newest != c.saved {
				t.Errorf("saved are %v, want %d", at, c.saved)
			}
			if text := fmt.Sprintf("terminated; step %d is saved, go on with: zeroshard train --out %s --resume", c.saved, out); strings.Contains(h.said.String(), text) != (c.code == exitSaved) {
				t.Errorf("%q is said or not:\n%s", text, &h.said)
			}
			if t.Failed() {
				return
			}
			if c.saved == 0 { // nothing to take settings from
				ok(t, append(args, "--resume", "--quiet")...)
			} else {
				ok(t, "train", "--out", out, "--resume", "--quiet")
			}
			if got := readSummary(t, out+"/summary.json").StateSHA256; got != want {
				t.Errorf("gone on with: state %s, want %s", got, want)
			}
		})
	}
	t.Run("before the first step of a resume", func(t *testing.T) {
		ok(t, micro(t, "--out", "again", "--quiet", "--steps", "5", "--stop-at", "3")...)
		h := &herald{text: "plan   ", sig: syscall.SIGTERM, heard: make(chan struct{})}
		if code := Execute([]string{"train", "--out", "again", "--resume"}, strings.NewReader(""), h, h); code != exitSaved || !strings.Contains(h.said.String(), "step 3 is saved") {
			t.Errorf("exit %d\n%s", code, &h.said)
		}
		s := readSummary(t, "again/summary.json")
		if s.Steps != 3 || s.ResumedFrom != 3 || len(s.Losses) != 0 || !slices.Equal(steps(t, "again"), []int{3}) {
			t.Errorf("%+v, steps %v", s, steps(t, "again"))
		}
	})
}

// A second signal while the state is being written ends at once. Either the step was committed just before, or it is absent; the next
// start is fine. The state is large, so that it is mostly being written.
func TestSecondSignalWhileSaving(t *testing.T) {
	empty(t)
	c := start(t, "--model", "tiny", "--out", "run", "--steps", "1000000", "--save-every", "0", "--eval-every", "0", "--sample", "0")
	c.until(t, "step ")
	c.Process.Signal(syscall.SIGTERM)
	waitFor(t, func() bool {
		names, err := os.ReadDir("run/checkpoints")
		return err == nil && len(names) > 0
	})
	c.Process.Signal(syscall.SIGTERM)
	if code := c.end(); code != exitTerm && code != exitSaved {
		t.Errorf("exit %d:\n%s", code, c.said)
	}
	at := steps(t, "run")
	if len(at) > 0 {
		ok(t, "checkpoint", "verify", "run")
	}
	ok(t, append(micro(t), "--model", "tiny", "--out", "run", "--resume", "--steps", "1000000", "--stop-at", fmt.Sprint(append([]int{0}, at...)[len(at)]+1), "--save-every", "1", "--sample", "0", "--quiet")...)
	if got := steps(t, "run"); len(got) != len(at)+1 {
		t.Errorf("steps %v, before %v", got, at)
	}
	for _, name := range files(t, "run/checkpoints") {
		if strings.HasPrefix(name, ".") {
			t.Errorf("left over: %s", name)
		}
	}
}

// The loop leaves before its first step without saving again what is saved.
func TestStopBeforeTheFirstStep(t *testing.T) {
	stop := make(chan struct{})
	close(stop)
	saved := 0
	s := train.Settings{From: train.Position{Step: 4, Tokens: 9}, Steps: 9, Stop: stop, Save: func(train.Position) error { saved++; return nil }}
	res, err := train.Run(context.Background(), nil, nil, s)
	if err != nil || !res.Stopped || res.At != s.From || saved != 0 || !math.IsNaN(res.ValLoss) {
		t.Errorf("%+v, %v, %d saves", res, err, saved)
	}
}

// What a checkpoint keeps of the command line reads back as it was: each flag's text is one that sets it to the same.
func TestSettingsReadBack(t *testing.T) {
	c := newTrain()
	for _, args := range [][]string{nil, {"--data", `"a, ""b"".txt",c.bin`, "--recompute", "3", "--device-memory", "3.5GiB", "--offload-ratio", "0.25", "--lr", "1e-7", "--keep-last"}, {"--data", `" "`, "--recompute", "all", "--device-memory", "1"},
		{"--data", "a\\b", "--seed", "18446744073709551615"}} {
		if err := c.ParseFlags(args); err != nil {
			t.Fatal(err)
		}
		raw, err := given(c.Flags())
		if err != nil {
			t.Fatal(err)
		}
		was := map[string]string{}
		if err := json.Unmarshal(raw, &was); err != nil {
			t.Fatal(err)
		}
		other := newTrain().Flags()
		for name, text := range was {
			if text == other.Lookup(name).Value.String() {
				continue // which is what inherit leaves alone
			}
			if err := other.Set(name, text); err != nil || other.Lookup(name).Value.String() != text {
				t.Errorf("--%s %q reads back as %q, %v", name, text, other.Lookup(name).Value, err)
			}
		}
		for _, name := range notInherited {
			if _, kept := was[name]; kept || name != "help" && c.Flags().Lookup(name) == nil {
				t.Errorf("--%s: kept %t, or no flag", name, kept)
			}
		}
	}
}

// Skipped steps before a save are known after it: the optimizer's updates are counted, not the steps. Here the rate is so high that the first
// update throws the weights out of range, and every later step is skipped.
func TestSkippedStepsAreCounted(t *testing.T) {
	empty(t)
	args := micro(t, "--steps", "8", "--lr", "1e30", "--warmup", "0", "--clip", "0", "--save-every", "1", "--quiet")
	ok(t, append(args, "--out", "run", "--stop-at", "3")...)
	ok(t, "train", "--out", "run", "--resume", "--stop-at", "5", "--ranks", "3")
	ok(t, "train", "--out", "run", "--resume")
	for step := 1; step <= 8; step++ {
		m, err := checkpoint.ReadManifest(checkpoint.OS{}, fmt.Sprintf("run/checkpoints/step-%08d", step))
		if err != nil || m.Step != step || m.Updates != 1 {
			t.Fatalf("step %d: %d updates in %d steps, %v", step, m.Updates, m.Step, err)
		}
	}
	h, err := report.ReadMetrics("run")
	if err != nil || len(h) != 8 {
		t.Fatalf("%d steps in the metrics, %v", len(h), err)
	}
	for _, s := range h {
		if (s.Skipped != "") != (s.Step > 1) {
			t.Errorf("step %d: skipped for %q", s.Step, s.Skipped)
		}
	}
	// Ten in a row end the run; what was saved stays, and is that of the last step before the end.
	got := refused(t, exitFailed, []string{"diverged"}, append(args, "--out", "diverged", "--steps", "50")...)
	if at := steps(t, "diverged"); at[len(at)-1] != 10 {
		t.Errorf("saved are %v:\n%s", at, got.stderr)
	}
}

// Between the look at what is newest and the lock another process may have saved: that is found, for a run that goes on and for one that
// found nothing.
func TestAnotherProcessSavedMeanwhile(t *testing.T) {
	empty(t)
	ok(t, micro(t, "--out", "run", "--quiet", "--save-every", "1")...)
	looked := func(step int) *run {
		r := &run{}
		r.output.out, r.saves.resume = "run", newest
		if step > 0 {
			m, err := checkpoint.ReadManifest(checkpoint.OS{}, fmt.Sprintf("run/checkpoints/step-%08d", step))
			if err != nil {
				t.Fatal(err)
			}
			r.saves.from = m
		}
		return r
	}
	for step, fine := range []bool{false, false, false, true} {
		if err := looked(step).stillNewest(); (err == nil) != fine || err != nil && (exitCode(err) != exitUsage || !strings.Contains(err.Error(), "another process has saved in run")) {
			t.Errorf("step %d was the newest: %v", step, err)
		}
	}
	r := looked(2)
	r.saves.resume = "2" // which was asked for, whatever is newer
	if err := r.stillNewest(); err != nil {
		t.Error(err)
	}
}
