package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"zeroshard/checkpoint/safetensors"
	"zeroshard/internal/golden"
)

// savedRun makes a run with steps 2 and 4 in the folder run of an empty current one.
func savedRun(t *testing.T) {
	t.Helper()
	empty(t)
	ok(t, micro(t, "--steps", "4", "--save-every", "2", "--out", "run", "--quiet")...)
}

const (
	step2 = "run/checkpoints/step-00000002"
	step4 = "run/checkpoints/step-00000004"
)

func TestCheckpointHelp(t *testing.T) {
	var all strings.Builder
	for _, name := range []string{"", "ls", "inspect", "verify", "diff", "prune", "consolidate", "export", "import"} {
		got := ok(t, append(strings.Fields("checkpoint "+name), "--help")...)
		all.WriteString(got.stdout + "\n")
	}
	golden.Check(t, "testdata/help-checkpoint.txt", all.String())
}

const lsOfRun = `step    bytes  files  tokens           saved by                         folder
2     218,784      2     256  2 rank(s), stage3  run/checkpoints/step-00000002
4     218,784      2     512  2 rank(s), stage3  run/checkpoints/step-00000004
`

func TestCheckpointLs(t *testing.T) {
	savedRun(t)
	if err := os.Mkdir("run/checkpoints/.step-00000005.tmp", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"run", "run/", "run/checkpoints"} {
		got := ok(t, "checkpoint", "ls", dir)
		if got.stdout != lsOfRun {
			t.Errorf("got\n%s\nwant\n%s", got.stdout, lsOfRun)
		}
		if got.stderr != "not committed: run/checkpoints/.step-00000005.tmp\n" {
			t.Errorf("%q", got.stderr)
		}
	}
	if got := ok(t, "checkpoint", "ls", step2); strings.Count(got.stdout, "\n") != 2 || !strings.Contains(got.stdout, "step-00000002") {
		t.Errorf("one step:\n%s", got.stdout)
	}
	var list []listed
	if err := json.Unmarshal([]byte(ok(t, "checkpoint", "ls", "run", "--json").stdout), &list); err != nil || len(list) != 2 || list[1].Step != 4 || list[1].Tokens != 512 ||
		list[1].Ranks != 2 || list[1].Files != 2 || list[1].Folder != step4 || list[1].Bytes < 12*17_208 {
		t.Errorf("%+v, %v", list, err)
	}
	ok(t, micro(t, "--save-every", "0", "--out", "unsaved", "--quiet")...)
	got := ok(t, "checkpoint", "ls", "unsaved")
	if got.stdout != "" || got.stderr != "nothing is committed in unsaved/checkpoints\n" {
		t.Errorf("a run without steps: %+v", got)
	}
	if got := ok(t, "checkpoint", "ls", "unsaved", "--json"); strings.TrimSpace(got.stdout) != "[]" {
		t.Errorf("%q", got.stdout)
	}
	flip(t, step2+"/manifest.json", 40)
	got = refused(t, exitFile, []string{"corrupt: " + step2 + "/manifest.json"}, "checkpoint", "ls", "run")
	if !strings.Contains(got.stdout, "step-00000004") {
		t.Errorf("the sound step is not listed:\n%s", got.stdout)
	}
}

func TestCheckpointInspect(t *testing.T) {
	savedRun(t)
	got := ok(t, "checkpoint", "inspect", "run")
	for _, want := range []string{"step       4, 4 updates, 512 tokens trained on, seed 7", "saved by   2 rank(s), 1 replica(s), stage3, plan ",
		"micro: 2 layers × 2 heads × 24, vocabulary 97, 16 positions, 17,208 parameters", "450 tokens to train on, 50 held out, 32 sequences drawn", "wte.weight", "[97 24]", "no decay"} {
		if !strings.Contains(got.stdout, want) {
			t.Errorf("stdout lacks %q:\n%s", want, got.stdout)
		}
	}
	if n := strings.Count(got.stdout, "wte.weight"); n != 3 {
		t.Errorf("the tied table is shown %d times, it has weights, m and v", n)
	}
	var all struct {
		Step, Updates int
		Settings      map[string]string
		Tensors       []struct {
			Name, State string
			Shape       []int
			Norm        float64
			NotFinite   int `json:"not_finite"`
		}
	}
	if err := json.Unmarshal([]byte(ok(t, "checkpoint", "inspect", step2, "--json").stdout), &all); err != nil {
		t.Fatal(err)
	}
	elements := 0
	for _, x := range all.Tensors {
		n := 1
		for _, d := range x.Shape {
			n *= d
		}
		elements += n
		if x.Norm <= 0 && x.State == "weights" && strings.HasSuffix(x.Name, "weight") || x.NotFinite != 0 {
			t.Errorf("%+v", x)
		}
	}
	if all.Step != 2 || all.Updates != 2 || all.Settings["ranks"] != "2" || all.Settings["model"] != "micro" || elements != 3*17_208 {
		t.Errorf("step %d, %d updates, settings %v, %d elements", all.Step, all.Updates, all.Settings, elements)
	}
}

// One flipped bit anywhere is found, and the file named.
func TestCheckpointVerify(t *testing.T) {
	savedRun(t)
	if got := ok(t, "checkpoint", "verify", "run"); !strings.HasPrefix(got.stdout, "2 step(s), ") || !strings.Contains(got.stdout, "all checksums agree; the newest is 4") {
		t.Error(got.stdout)
	}
	if got := ok(t, "checkpoint", "verify", step2); !strings.Contains(got.stdout, "1 step(s)") || !strings.Contains(got.stdout, "the newest is 2") {
		t.Error(got.stdout)
	}
	for _, name := range []string{"step-00000002/rank-00000.safetensors", "step-00000004/rank-00001.safetensors", "step-00000004/manifest.json", "latest"} {
		path := filepath.Join("run/checkpoints", name)
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range []int{0, int(info.Size()) / 2, int(info.Size()) - 1} {
			flip(t, path, at)
			refused(t, exitFile, []string{path, "corrupt"}, "checkpoint", "verify", "run")
			flip(t, path, at)
		}
	}
	if err := os.Truncate(step4+"/rank-00001.safetensors", 5000); err != nil {
		t.Fatal(err)
	}
	refused(t, exitFile, []string{step4 + "/rank-00001.safetensors", "5000 bytes, the manifest says"}, "checkpoint", "verify", "run")
	ok(t, "checkpoint", "verify", step2)
	if err := os.Remove(step4 + "/rank-00001.safetensors"); err != nil {
		t.Fatal(err)
	}
	refused(t, exitFile, []string{step4 + "/rank-00001.safetensors", "no such file"}, "checkpoint", "verify", "run")
}

func TestCheckpointDiff(t *testing.T) {
	savedRun(t)
	if got := ok(t, "checkpoint", "diff", "run", step4); got.stdout != "the same bits: steps 4 and 4\n" {
		t.Errorf("%q", got.stdout)
	}
	got := refused(t, exitFailed, []string{"the steps differ"}, "checkpoint", "diff", "run", step2)
	if !strings.HasPrefix(got.stdout, "weights/wte.weight: ") || !strings.Contains(got.stdout, " of 2328 elements differ, the first at ") || strings.Count(got.stdout, "\n") != 1 {
		t.Errorf("%q", got.stdout)
	}
	if got := refused(t, exitFailed, nil, "checkpoint", "diff", "run", step2, "--all"); strings.Count(got.stdout, "\n") < 50 {
		t.Errorf("all: %s", got.stdout)
	}
	// Another world, stage and tier saves the same bits.
	ok(t, micro(t, "--steps", "4", "--out", "other", "--ranks", "7", "--stage", "1", "--offload-optimizer", "host", "--quiet")...)
	ok(t, "checkpoint", "diff", "run", "other")
}

func TestCheckpointPrune(t *testing.T) {
	savedRun(t)
	if got := ok(t, "checkpoint", "prune", "run", "--keep", "5"); got.stdout != "0 step(s) removed, 2 kept\n" {
		t.Errorf("%q", got.stdout)
	}
	newest := filepath.Join("run", "checkpoints", "step-00000004", "rank-00000.safetensors")
	flip(t, newest, 5000)
	refused(t, exitFile, []string{newest, "is 2: nothing is removed"}, "checkpoint", "prune", "run", "--keep", "1")
	flip(t, newest, 5000)
	if got := ok(t, "checkpoint", "prune", "run", "--keep", "1"); got.stdout != "1 step(s) removed, 1 kept\n" || !slices.Equal(steps(t, "run"), []int{4}) {
		t.Errorf("%q, steps %v", got.stdout, steps(t, "run"))
	}
	ok(t, "checkpoint", "verify", "run")
	for _, args := range []string{"run", "run --keep 0", "run --keep -2", step4 + " --keep 1"} {
		refused(t, exitUsage, []string{"prune takes"}[:min(1, strings.Count(args, "step-"))], strings.Fields("checkpoint prune "+args)...)
	}
	if !slices.Equal(steps(t, "run"), []int{4}) {
		t.Errorf("steps %v", steps(t, "run"))
	}
}

// Weights go to one file, to a Hugging Face folder, back into a step, and into a new run; they are the same everywhere.
func TestCheckpointWeightsComeAndGo(t *testing.T) {
	savedRun(t)
	ok(t, "checkpoint", "consolidate", "run", "--out", "w.safetensors")
	ok(t, "checkpoint", "consolidate", step4, "--out", "all.safetensors", "--optimizer")
	tensors := map[string]int{}
	for _, name := range []string{"w.safetensors", "all.safetensors"} {
		f, err := safetensors.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		elements := 0
		for _, x := range f.Tensors {
			elements += int(x.Len())
		}
		tensors[name] = elements
		f.Close()
	}
	if tensors["w.safetensors"] != 17_208 || tensors["all.safetensors"] != 3*17_208 {
		t.Errorf("elements %v", tensors)
	}
	if got := ok(t, "checkpoint", "export", "run", "--hf", "hf"); got.stdout != "hf is a Hugging Face GPT-2 folder: 17,208 parameters, F32\n" || !strings.Contains(got.stderr, "no tokenizer files are written") {
		t.Errorf("%+v", got)
	}
	if got := ok(t, "checkpoint", "import", "hf", "--out", "back"); got.stdout != "back holds the weights of hf as step 0: train --init-from back starts from them\n" {
		t.Errorf("%q", got.stdout)
	}
	ok(t, "checkpoint", "verify", "back")
	got := refused(t, exitFailed, nil, "checkpoint", "diff", "run", "back", "--all")
	for line := range strings.Lines(got.stdout) { // all but the weights, which an import is
		if !strings.HasSuffix(line, ": only in the first\n") || strings.HasPrefix(line, "weights/") {
			t.Errorf("export and import changed something: %s", line)
		}
	}
	var hashes []string
	for i, from := range []string{"run", step4, "hf", "back"} {
		out := []string{"a", "b", "c", "d"}[i]
		args := []string{"--steps", "2", "--out", out, "--init-from", from, "--sample", "0"}
		got := ok(t, append([]string{"train", "--data", micro(t)[4]}, args...)...)
		for _, want := range []string{"init       weights of " + from, "2 layers × 2 heads × 24", "step 1/2  loss "} {
			if !strings.Contains(got.stderr, want) {
				t.Errorf("from %s: stderr lacks %q:\n%s", from, want, got.stderr)
			}
		}
		hashes = append(hashes, readSummary(t, out+"/summary.json").StateSHA256)
		ok(t, "train", "--out", out, "--resume", "--quiet") // which knows the model without --model and --init-from
	}
	if len(slices.Compact(hashes)) != 1 {
		t.Errorf("states after two steps: %v", hashes)
	}
	ok(t, append([]string{"train", "--data", micro(t)[4]}, "--model", "micro", "--steps", "2", "--out", "own", "--quiet")...)
	if readSummary(t, "own/summary.json").StateSHA256 == hashes[0] {
		t.Error("--init-from does nothing")
	}
	// What is imported is not a run that goes on, but a run may begin in its folder.
	refused(t, exitUsage, []string{"back holds imported weights", "--init-from back"}, "train", "--out", "back", "--resume", "--quiet")
	ok(t, append([]string{"train", "--data", micro(t)[4]}, "--model", "micro", "--steps", "2", "--out", "back", "--init-from", "back", "--quiet")...)
	if !slices.Equal(steps(t, "back"), []int{0, 2}) || readSummary(t, "back/summary.json").StateSHA256 != hashes[0] {
		t.Errorf("steps %v", steps(t, "back"))
	}
	for _, d := range []string{"f16", "bf16", "F32"} {
		ok(t, "checkpoint", "export", "run", "--hf", "hf-"+d, "--dtype", d, "--shard-bytes", "20000")
		ok(t, "checkpoint", "import", "hf-"+d, "--out", "back-"+d)
	}
	ok(t, "checkpoint", "export", "back-F32", "--hf", "again")
	a, err := os.ReadFile("hf/model.safetensors")
	b, err2 := os.ReadFile("again/model.safetensors")
	if err != nil || err2 != nil || string(a) != string(b) {
		t.Errorf("exported, imported and exported: other bytes (%v, %v)", err, err2)
	}
}

// What is no checkpoint, or of another kind, is refused in one clear line.
func TestCheckpointRefusals(t *testing.T) {
	savedRun(t)
	ok(t, "checkpoint", "export", "run", "--hf", "hf")
	if err := os.WriteFile("file", []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		code int
		args string
		says string
	}{
		{2, "checkpoint lss", `unknown command "lss": did you mean ls?`},
		{2, "checkpoint ls", "ls needs a run's folder, it got 0"},
		{2, "checkpoint ls run run", "it got 2"},
		{2, "checkpoint diff run", "diff needs a folder and another, it got 1"},
		{3, "checkpoint ls nope", "nope: no such file"},
		{3, "checkpoint ls file", "file"},
		{3, "checkpoint ls hf", "hf is neither a run's folder with checkpoints/ in it nor a step's"},
		{3, "checkpoint inspect nope", "nope: no such file"},
		{3, "checkpoint verify hf", "neither a run's folder"},
		{3, "checkpoint diff run hf", "hf is neither"},
		{3, "checkpoint inspect run/checkpoints/step-00000003", "no such file"},
		{2, "checkpoint prune run", "--keep 0"},
		{2, "checkpoint consolidate run", "--out FILE"},
		{3, "checkpoint consolidate run --out file", "file already exists"},
		{3, "checkpoint consolidate run --out nope/file", "nope"},
		{2, "checkpoint export run", "--hf OUT"},
		{2, "checkpoint export run --hf x --dtype f8", `--dtype "f8": use f32, f16 or bf16`},
		{2, "checkpoint export run --hf x --tokenizer gpt2", "has 50257 tokens"},
		{3, "checkpoint export nope --hf x", "nope"},
		{2, "checkpoint export run --hf hf", "hf exists and is not empty"},
		{2, "checkpoint import hf", "--out DIR"},
		{2, "checkpoint import hf --out run", "the folder is not empty"},
		{2, "checkpoint import run --out x", "run holds steps of this program already"},
		{3, "checkpoint import nope --out x", "nope"},
		{3, "train --init-from nope --quiet", "nope"},
		{3, "train --init-from .. --quiet", "no config.json makes it a Hugging Face folder"},
		{2, "train --init-from= --quiet", "--init-from: the folder's name is empty"},
		{2, "train --init-from run --model tiny --quiet", "--model tiny: run holds a model of 2 layers"},
		{2, "train --init-from run --quiet", "the vocabulary must be at least 256, it is 97"}, // of the default text
	} {
		t.Run(strings.ReplaceAll(c.args, "/", "_"), func(t *testing.T) {
			got := refused(t, c.code, []string{c.says}, strings.Fields(c.args)...)
			if lines := strings.Count(got.stderr, "\n"); lines != 1 && !strings.Contains(got.stderr, "no tokenizer files") {
				t.Errorf("%d lines:\n%s", lines, got.stderr)
			}
		})
	}
	if got := files(t, "."); slices.Contains(got, "x") || slices.Contains(got, "runs") {
		t.Errorf("files %v", got)
	}
	// A run does not begin among another's steps, also where its settings are gone.
	if err := os.Remove("run/settings.json"); err != nil {
		t.Fatal(err)
	}
	refused(t, exitUsage, []string{"steps up to 4 are saved in it: go on with them (--resume)"}, micro(t, "--out", "run", "--quiet")...)
	ok(t, "train", "--out", "run", "--resume", "--quiet")
}
