package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"zeroshard/data"
	"zeroshard/data/prepare"
	"zeroshard/internal/golden"
)

// documents writes small documents into a new folder.
func documents(t *testing.T, n int) string {
	t.Helper()
	dir := t.TempDir()
	for i := range n {
		text := strings.Repeat(fmt.Sprintf("document %d has these words. ", i), 4)
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%02d.txt", i)), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestPrepareTable(t *testing.T) {
	for name, args := range map[string][]string{
		"several": {documents(t, 12)},
		"one":     {filepath.Join(documents(t, 1), "00.txt"), "--tokenizer", "bytes", "--val", "0"},
	} {
		t.Run(name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out")
			got := execute(append([]string{"prepare", "-o", out}, args...)...)
			if got.code != exitOK || got.stderr != "" {
				t.Fatalf("exit code %d: %s", got.code, got.stderr)
			}
			speed := regexp.MustCompile(`(?m)^[0-9.]+ MB/s, [0-9,]+ tokens/s$`)
			if !speed.MatchString(got.stdout) {
				t.Errorf("no speed in\n%s", got.stdout)
			}
			head, rest, _ := strings.Cut(speed.ReplaceAllString(got.stdout, "SPEED"), "\n")
			golden.Check(t, "testdata/prepare-"+name+".txt", strings.Join(strings.Fields(head)[1:], " ")+"\n"+regexp.MustCompile("(?m)  +").ReplaceAllString(rest, "  "))
			if left := files(t, out); !slices.Contains(left, "train.bin") || !slices.Contains(left, "meta.json") {
				t.Errorf("left %v", left)
			}
		})
	}
}

// A model learns what was prepared, and knows the vocabulary.
func TestPrepareThenTrain(t *testing.T) {
	in := documents(t, 12)
	empty(t)
	if got := execute("prepare", in, "-o", "d", "--tokenizer", "bytes", "--quiet"); got != (outcome{}) {
		t.Fatalf("%+v", got)
	}
	got := execute("train", "--model", "micro", "--data", "d", "--steps", "2", "--warmup", "1")
	if got.code != exitUsage || !strings.Contains(got.stderr, "bytes's vocabulary of 256, the model's is 97") {
		t.Errorf("exit code %d: %s", got.code, got.stderr)
	}
	got = execute("train", "--model", "tiny", "--seq", "16", "--data", "d", "--steps", "1", "--warmup", "1", "--sample", "0")
	if got.code != exitOK {
		t.Errorf("exit code %d: %s", got.code, got.stderr)
	}
}

// Of few documents the last is for validation, and who asked hears of it.
func TestPrepareFew(t *testing.T) {
	in := documents(t, 2)
	empty(t)
	got := ok(t, "prepare", in, "-o", "d", "--tokenizer", "bytes")
	if !strings.Contains(got.stdout, "the last document is for validation: by --val none of 2 would be\n") {
		t.Error(got.stdout)
	}
}

func TestPrepareRefuses(t *testing.T) {
	in, one := documents(t, 3), filepath.Join(t.TempDir(), "one.jsonl")
	if err := os.WriteFile(one, []byte(`{"text": "a"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	dir := empty(t)
	for _, c := range []struct {
		args []string
		code int
		say  string
	}{
		{[]string{"-o", "d"}, exitUsage, "nothing to prepare"},
		{[]string{in}, exitUsage, "-o is missing"},
		{[]string{in, "-o", "d", "--tokenizer", "gpt-2"}, exitUsage, "did you mean gpt2?"},
		{[]string{in, "-o", "d", "--tokenizer", in}, exitFile, "vocab.json"},
		{[]string{in, "-o", "d", "--val", "1.5", "--format", "csv"}, exitUsage, "--format \"csv\": want auto, text or jsonl\nzeroshard: --val 1.5"},
		{[]string{one, "-o", "d"}, exitUsage, "of 1 document(s) at most one has text"},
		{[]string{"none.txt", "-o", "d"}, exitFile, "none.txt"},
		{[]string{in, "-o", filepath.Join(in, "d")}, exitUsage, "write elsewhere"},
		{[]string{in, "-o", "d", "--text-field", ""}, exitUsage, "--text-field"},
	} {
		got := execute(append([]string{"prepare"}, c.args...)...)
		if got.code != c.code || !strings.Contains(got.stderr, c.say) || got.stdout != "" {
			t.Errorf("%v: exit code %d: %s", c.args, got.code, got.stderr)
		}
	}
	if left := files(t, dir); left != nil {
		t.Errorf("left %v", left)
	}
}

// Who names a folder without tokens is told how to make them.
func TestTrainWithoutPrepare(t *testing.T) {
	dir := empty(t)
	got := execute("train", "--data", dir)
	if got.code != exitFile || !strings.Contains(got.stderr, "holds no train.bin: make one of texts by zeroshard prepare FILES -o "+dir) {
		t.Errorf("exit code %d: %s", got.code, got.stderr)
	}
}

// Without a terminal a line comes now and then, and none when nothing is to be said.
func TestPrepareLines(t *testing.T) {
	var w bytes.Buffer
	b := newBar(&w)
	p := prepare.Progress{Done: 3 << 20, Total: 4 << 20, Tokens: 12345}
	if b.report(p); w.Len() > 0 {
		t.Errorf("at once: %s", &w)
	}
	for _, want := range []string{"prepared 3 MiB of 4 MiB, 75%: 12,345 tokens\n", "prepared 3 MiB: 12,345 tokens\n"} {
		w.Reset()
		b.last = b.last.Add(-lineEvery)
		if b.report(p); w.String() != want {
			t.Errorf("%q, want %q", &w, want)
		}
		p.Total = 0
	}
	b.close()
	quiet := prepareBar{}
	quiet.report(p)
	quiet.close()
}

// The standard input reaches the files, and its file is overwritten only when asked.
func TestPrepareStandardInput(t *testing.T) {
	empty(t)
	run := func(text string, more ...string) int {
		return Execute(append([]string{"prepare", "-", "-o", "d", "--tokenizer", "bytes", "--quiet"}, more...), strings.NewReader(text), io.Discard, io.Discard)
	}
	if a, b, c := run("0123456789"), run("abcdefghij"), run("abcdefghij", "--force"); a != exitOK || b != exitUsage || c != exitOK {
		t.Errorf("exit codes %d, %d, %d", a, b, c)
	}
	raw, err := os.ReadFile("d/val.bin")
	if err != nil || !bytes.Equal(raw, []byte{'j', 0}) {
		t.Errorf("% x, %v", raw, err)
	}
	var m data.Meta
	if raw, err = os.ReadFile("d/meta.json"); err != nil || json.Unmarshal(raw, &m) != nil || m.Train.Tokens != 9 || m.Tokenizer != "bytes" {
		t.Errorf("%s, %v", raw, err)
	}
}

func TestPrepareHelp(t *testing.T) {
	golden.Check(t, "testdata/help-prepare.txt", execute("prepare", "--help").stdout)
}

// A signal ends a run that waits for its input, and nothing is left.
func TestPrepareInterrupted(t *testing.T) {
	dir := empty(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), exe, "prepare", "-", "-o", "d", "--tokenizer", "bytes")
	c.Env = append(os.Environ(), "ZEROSHARD_IS_COMMAND=1")
	var stderr bytes.Buffer
	c.Stderr = &stderr
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	for len(files(t, dir)) == 0 { // until it is at work
		if _, err := io.WriteString(in, "some words "); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
	if code := c.ProcessState.ExitCode(); code != exitInt || !strings.Contains(stderr.String(), "stopped by interrupt") {
		t.Errorf("exit code %d: %s", code, &stderr)
	}
	if left := files(t, dir); left != nil {
		t.Errorf("left %v", left)
	}
}
