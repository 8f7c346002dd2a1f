package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"zeroshard/data"
	"zeroshard/device"
	"zeroshard/memory"
	"zeroshard/models/gpt"
	"zeroshard/optim"
	"zeroshard/shard"
	"zeroshard/train"
	"zeroshard/zero"
)

// What cannot run is refused with the documented code and a short message that names the flag, and nothing is written.
func TestRefusals(t *testing.T) {
	folder := t.TempDir()
	bad := func(name, content string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	held := filepath.Join(folder, "held")
	if err := train.Folder(held).Create(1); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		args string
		code int
		says string
	}{
		{"wrong stage", "train --stage 7", 2, "--stage 7"},
		{"negative stage", "train --stage -1", 2, "--stage -1"},
		{"zero ranks", "train --ranks 0", 2, "--ranks 0"},
		{"more ranks than leaves", "train --ranks 9", 2, "at most 8 ranks have work (or --global-batch 9)"},
		{"batch that does not divide", "train --global-batch 7 --micro-batch 2", 2, "nearest that does is 6 or 8"},
		{"batch under the micro-batch", "train --global-batch 1 --micro-batch 2", 2, "nearest that does is 2"},
		{"plan of a million micro-batches", "train --global-batch 2000000", 2, "--micro-batch 245"},
		{"plan of many micro-batches", "plan --global-batch 8194", 2, "use at most 4096"},
		{"zero batch", "train --global-batch 0", 2, "--global-batch 0"},
		{"zero micro-batch", "train --micro-batch 0", 2, "--micro-batch 0"},
		{"sequence longer than positions", "train --seq 129", 2, "tiny has 128 positions"},
		{"negative sequence", "train --seq -1", 2, "--seq -1"},
		{"unknown preset", "train --model nope", 2, `"nope"`},
		{"mistyped preset", "train --model tyni", 2, "did you mean tiny"},
		{"unknown flag", "train --modle tiny", 2, "unknown flag --modle: did you mean --model?"},
		{"unknown short flag", "train -m tiny", 2, "unknown flag -m"},
		{"unknown flag with no near one", "train --qqqqqq", 2, "unknown flag --qqqqqq"},
		{"flag without value", "train --model", 2, "--model needs a value"},
		{"number that is none", "train --ranks two", 2, `--ranks "two": want a whole number`},
		{"fraction of a rank", "train --ranks 1.5", 2, `--ranks "1.5": want a whole number`},
		{"rate that is none", "train --lr fast", 2, `--lr "fast": want a number`},
		{"rate that is NaN", "train --lr NaN", 2, "learning rate NaN"},
		{"negative rate", "train --lr -1", 2, "learning rate -1"},
		{"negative seed", "train --seed -1", 2, "--seed"},
		{"bad size", "train --device-memory 3parsecs", 2, "64MiB"},
		{"bad recompute", "train --recompute some", 2, "want none, all"},
		{"recompute 0", "train --recompute 0", 2, "want none, all"},
		{"bf16", "train --precision bf16", 2, "plan takes bf16"},
		{"unknown precision", "train --precision fp8", 2, "fp32 or bf16"},
		{"unknown optimizer", "train --optimizer adam", 2, "adamw or sgd"},
		{"unknown schedule", "train --schedule step", 2, "cosine"},
		{"setting of another optimizer", "train --optimizer sgd --beta1 0.9", 2, "--beta1 has no meaning for --optimizer sgd"},
		{"replicas that do not divide", "train --ranks 4 --replicas 3", 2, "use 1, 2, 4"},
		{"replicas that do not fit the tree", "train --global-batch 6 --ranks 2 --replicas 2", 2, "replicas"},
		{"window that is no power of two", "train --window 3", 2, "--window 3"},
		{"window too large", "train --stage 0 --window 8", 2, "window"},
		{"negative prefetch", "train --prefetch -1", 2, "--prefetch -1"},
		{"dropout 1", "train --dropout 1", 2, "--dropout 1"},
		{"zero steps", "train --steps 0", 2, "0 steps"},
		{"negative sample", "train --sample -1", 2, "--sample -1"},
		{"argument", "train tiny", 2, `unexpected argument "tiny"`},
		{"unknown command", "tarin", 2, "did you mean train?"},
		{"empty file name", "train --data a,,b", 2, "a file name is empty"},
		{"quote that does not end", "train --data \"a", 2, "--data"},
		{"missing file", "train --data /nonexistent/file", 3, "/nonexistent/file"},
		{"second file missing", "train --data " + bad("t.txt", strings.Repeat("a", 999)) + ",/nonexistent/file", 3, "/nonexistent/file"},
		{"half a token", "train --data " + bad("odd.bin", "abc"), 3, "odd.bin: byte 2"},
		{"too short", "train --data " + bad("short.txt", "abc"), 3, "too short"},
		{"empty file", "train --data " + bad("empty.bin", ""), 3, "too short"},
		{"id outside the vocabulary", "train --data " + bad("ids.bin", strings.Repeat("\x00\x00", 500)+"\x00\x01"), 3, "token 500 at byte 1000"},
		{"text for a small vocabulary", "train --model micro", 2, "vocabulary"},
		{"summary in no folder", "train --summary /nonexistent/s.json", 3, "/nonexistent/s.json"},
		{"summary on a folder", "train --summary " + folder, 3, folder},
		{"run folder that holds a run", "train --out " + held, 2, "holds a run already"},
		{"run folder that is a file", "train --out " + bad("file", ""), 3, "not a directory"},
		{"too little memory", "train --stage 0 --ranks 4 --device-memory 14MiB", 4, "stage"},
		{"memory report into a file", "train --data " + tokens(t, 500) + " --model micro --memory-report " + bad("page", ""), 3, "--memory-report: mkdir "},
		{"memory report where none can write", "train --data " + tokens(t, 500) + " --model micro --memory-report /proc/self", 3, "--memory-report: train: write /proc/self/memory.html: "},
		{"live page at no address", "train --dash 7777", 2, "want host:port"},
		{"live page at another's address", "train --data " + tokens(t, 500) + " --model micro --dash " + taken(t), 2, "in use"},
		{"path of tiers without one in files", "train --offload-optimizer host --offload-path d", 2, "--offload-path d has no meaning without"},
		{"dash of nothing", "dash", 2, "--run is needed"},
		{"dash of no folder", "dash --run /nonexistent", 3, "/nonexistent/metrics.jsonl"},
		{"dash of a folder without a run", "dash --run " + folder, 3, "no run here"},
		{"plan: wrong stage", "plan --stage 4", 2, "--stage 4"},
		{"plan: flag of train", "plan --lr 1", 2, "unknown flag --lr"},
		{"plan: too little memory", "plan --model gpt2 --device-memory 1GB", 4, "stage"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := empty(t)
			got := execute(strings.Fields(c.args)...)
			if got.code != c.code {
				t.Errorf("exit code %d, want %d", got.code, c.code)
			}
			if !strings.Contains(got.stderr, c.says) {
				t.Errorf("stderr does not say %q:\n%s", c.says, got.stderr)
			}
			if n := strings.Count(strings.TrimSpace(got.stderr), "\n") + 1; n > 6 && c.code != exitNoFit {
				t.Errorf("%d lines:\n%s", n, got.stderr)
			}
			if got.stdout != "" {
				t.Errorf("stdout has %q", got.stdout)
			}
			if left := files(t, dir); left != nil {
				t.Errorf("left %v", left)
			}
		})
	}
}

func TestAllFaultsAreToldAtOnceButShortly(t *testing.T) {
	empty(t)
	got := execute("train", "--stage", "9", "--ranks", "0")
	if !strings.Contains(got.stderr, "--stage 9") || !strings.Contains(got.stderr, "--ranks 0") {
		t.Errorf("only a part is told:\n%s", got.stderr)
	}
	got = execute("train", "--stage", "9", "--ranks", "0", "--prefetch", "-1", "--lr", "-1", "--eps", "0", "--beta1", "1", "--beta2", "1", "--steps", "0")
	if n := strings.Count(got.stderr, "\n"); n != 5 || !strings.Contains(got.stderr, "and 4 more") {
		t.Errorf("%d lines, want 5:\n%s", n, got.stderr)
	}
}

func TestExitCode(t *testing.T) {
	path := &fs.PathError{Op: "open", Path: "x", Err: fs.ErrPermission}
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("boom"), 1},
		{&zero.OpError{Err: errors.New("boom")}, 1},
		{train.ErrDiverged, 1},
		{&usageError{"x"}, 2},
		{zero.ErrOptions, 2}, {zero.ErrStrategy, 2}, {shard.ErrWorld, 2}, {shard.ErrWindows, 2}, {shard.ErrMesh, 2},
		{gpt.ErrConfig, 2}, {optim.ErrOptimizer, 2}, {gpt.ErrShape, 2}, {data.ErrMismatch, 2}, {train.ErrExists, 2},
		{path, 3}, {data.ErrCorrupt, 3}, {data.ErrNoCorpus, 3}, {&data.FileError{}, 3},
		{memory.ErrLimit, 4}, {&memory.LimitError{}, 4}, {device.ErrMemory, 4},
		{&signalError{syscall.SIGINT}, 130}, {&signalError{syscall.SIGTERM}, 143},
	} {
		for _, err := range []error{c.err, wrap(c.err)} {
			if got := exitCode(err); got != c.want {
				t.Errorf("%v: code %d, want %d", err, got, c.want)
			}
		}
	}
}

func wrap(err error) error {
	if err == nil {
		return nil
	}
	return errors.Join(fmt.Errorf("while testing: %w", err))
}

func TestNearest(t *testing.T) {
	flags := []string{"model", "micro-batch", "ranks", "stage", "steps"}
	for text, want := range map[string]string{"modle": "model", "mode": "model", "model": "model", "micro_batch": "micro-batch",
		"rank": "ranks", "RANKS": "ranks", "stpes": "steps", "x": "", "completely": "", "": ""} {
		if got := nearest(text, flags); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestSize(t *testing.T) {
	for text, want := range map[string]string{"0": "unlimited", "67108864": "64MiB", "64MiB": "64MiB", "1.5gb": "1500000000", "1023": "1023B"} {
		var s size
		if err := s.Set(text); err != nil || s.String() != want {
			t.Errorf("%q: %q (%v), want %q", text, s.String(), err, want)
		}
		var again size
		if s != 0 && (again.Set(s.String()) != nil || again != s) {
			t.Errorf("%q does not read back: %d", s.String(), again)
		}
	}
}

// taken is an address that somebody listens on.
func taken(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}
