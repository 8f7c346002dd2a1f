package main

import (
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"zeroshard/models/gpt/hf"
)

// A model is measured alike from what one rank saved and from what three saved in parts, by any ranks, from the run's folder and the step's.
func TestInferenceFromAnyWorld(t *testing.T) {
	dir := empty(t)
	data := tokens(t, 500)
	seen := map[string]string{}
	for _, world := range []string{"--ranks 1 --stage 0", "--ranks 3 --stage 3"} {
		run := filepath.Join(dir, strings.ReplaceAll(world, " ", ""))
		args := append([]string{"train", "--model", "micro", "--data", data, "--steps", "2", "--warmup", "1", "--sample", "0", "--out", run}, strings.Fields(world)...)
		if o := execute(args...); o.code != 0 {
			t.Fatal(o.stderr)
		}
		steps, err := filepath.Glob(filepath.Join(run, "checkpoints", "step-*"))
		if err != nil || len(steps) != 1 {
			t.Fatal(steps, err)
		}
		for _, from := range []string{run, steps[0]} {
			for _, on := range []string{"--ranks 1", "--ranks 2 --stage 3"} {
				o := execute(append([]string{"eval", "--json", "--from", from, "--data", data}, strings.Fields(on)...)...)
				if o.code != 0 {
					t.Fatal(o.stderr)
				}
				seen[o.stdout] = from + " on " + on
			}
		}
	}
	if len(seen) != 1 {
		t.Errorf("one model is measured in %d ways: %v", len(seen), seen)
	}
}

// A run on a text knows that its tokens are bytes.
func TestGenerateFromARun(t *testing.T) {
	dir := empty(t)
	text, run := filepath.Join(dir, "text"), filepath.Join(dir, "run")
	if err := os.WriteFile(text, []byte(strings.Repeat("some words to learn. ", 40)), 0o644); err != nil {
		t.Fatal(err)
	}
	o := execute("train", "--data", text, "--steps", "1", "--warmup", "1", "--global-batch", "1", "--ranks", "1", "--seq", "16", "--sample", "0", "--out", run)
	if o.code != 0 {
		t.Fatal(o.stderr)
	}
	got := generate(t, "--from", run, "--prompt", "some ", "--max-tokens", "150", "--top-k", "0")
	if !strings.HasPrefix(got.stdout, "some ") || !utf8.ValidString(got.stdout) || utf8.RuneCountInString(got.stdout) < 50 {
		t.Errorf("wrote %q", got.stdout)
	}
}

// A signal ends a text where it is, whole characters and a line's end, and the exit code names it.
func TestGenerateEndsOnASignal(t *testing.T) {
	empty(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), exe, "generate", "--from", byteModel(t), "--prompt", "go on", "--prompt", "and on", "--max-tokens", "1000000000", "--temperature", "2", "--top-k", "0")
	c.Env = append(os.Environ(), "ZEROSHARD_IS_COMMAND=1")
	stdout, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	some := make([]byte, 200)
	if _, err := io.ReadFull(stdout, some); err != nil {
		t.Fatal(err)
	}
	if err := c.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(stdout)
	if err != nil {
		t.Fatal(err)
	}
	c.Wait()
	text := string(some) + string(rest)
	if code := c.ProcessState.ExitCode(); code != exitInt || !utf8.ValidString(text) || !strings.HasPrefix(text, "go on") || !strings.HasSuffix(text, "\n") ||
		strings.Count(text, between+"\n") != 1 {
		t.Errorf("exit code %d, %d bytes that end with %q", code, len(text), text[max(0, len(text)-100):])
	}
}

// One weight that is no number ends generate and eval with its name, and nothing that was drawn from it is written.
func TestWeightsThatAreNotFinite(t *testing.T) {
	dir := empty(t)
	good, bad, large := byteModel(t), filepath.Join(dir, "bad"), filepath.Join(dir, "large")
	spoil := func(to, in string, value float32) {
		t.Helper()
		f, err := hf.Open(good)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		err = hf.Write(to, hf.Export{Config: f.Config()}, func(name string, lo int, dst []float32) error {
			err := f.Read(name, lo, dst)
			if name == in {
				for i := range dst {
					if in == "ln_f.weight" || lo+i == 3 {
						dst[i] = value
					}
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	spoil(bad, "h.0.ln_1.weight", float32(math.NaN()))
	spoil(large, "ln_f.weight", math.MaxFloat32)
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte(strings.Repeat("some words. ", 40)), 0o644); err != nil {
		t.Fatal(err)
	}
	for from, says := range map[string]string{bad: "h.0.ln_1.weight of " + bad + " is NaN at element 3", large: "all parameters of " + large + " are"} {
		for _, c := range []struct{ line, what string }{
			{"generate --prompt abc --quiet", "prompt 1: train: generate: the logits of token 3 are not finite: "},
			{"generate --prompt abc --quiet --temperature 0 --json", "prompt 1: train: generate: the logits of token 3 are not finite: "},
			{"generate --prompt abcd --prompt abc --quiet --batch 1", "prompt 1: train: generate: the logits of token 4 are not finite: "},
			{"generate --prompt abc --quiet --ranks 2 --stage 3", "prompt 1: train: generate: the logits of token 3 are not finite: "},
			{"eval --quiet --data " + text, "the loss of windows 1 to 20 is not finite: "},
		} {
			got := refused(t, exitFailed, []string{c.what + says}, append(strings.Fields(c.line), "--from", from)...)
			if strings.ContainsRune(got.stdout, 0) || strings.Contains(got.stdout, "loss") || strings.Count(got.stderr, "\n") != 1 {
				t.Errorf("%s: %q, %q", c.line, got.stdout, got.stderr)
			}
		}
	}
}

// What is wrong in a folder of others is a fault of a file, on one line.
func TestFoldersThatAreWrong(t *testing.T) {
	empty(t)
	for old, now := range map[string]string{`"layer_norm_epsilon": 1e-05`: `"layer_norm_epsilon": -1`, `"layer_norm_epsilon": 1e-05,`: `"layer_norm_epsilon": 2,`,
		`"n_head": 2`: `"n_head": 3`, `"n_layer": 2`: `"n_layer": 0, "attn_pdrop": 7`, `"n_layer": 2,`: `"n_layer": 3,`, `"n_embd": 16`: `"n_embd": "16"`, `"n_positions": 24`: `"n_positions": -3`} {
		from := byteModel(t)
		replace(t, filepath.Join(from, "config.json"), old, now)
		for _, line := range []string{"generate --prompt x --from ", "train --quiet --init-from ", "checkpoint import --out x "} {
			if got := refused(t, exitFile, []string{"hf: "}, strings.Fields(line+from)...); strings.Count(got.stderr, "\n") != 1 {
				t.Errorf("%s: %s", now, got.stderr)
			}
		}
	}
}
