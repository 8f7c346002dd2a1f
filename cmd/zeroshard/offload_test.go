package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"zeroshard"
	"zeroshard/collectives"
	"zeroshard/memory"
	"zeroshard/models/gpt"
	"zeroshard/offload"
	"zeroshard/zero"
)

// onFile is a micro run with everything in files in dir.
func onFile(t *testing.T, dir string, more ...string) []string {
	return micro(t, append([]string{"--offload-optimizer", "file", "--offload-param", "file", "--offload-path", dir}, more...)...)
}

// left is what is in a folder of tiers.
func left(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*", "*.tier"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// A run that is killed cannot remove its files: the next one does, says so, and trains to the bits of a run that never met them.
func TestKilledRunIsCleanedUp(t *testing.T) {
	empty(t)
	dir := t.TempDir()
	if got := execute(onFile(t, dir, "--quiet", "--out", "alone", "--summary", "alone.json")...); got.code != 0 || len(left(t, dir)) > 0 {
		t.Fatalf("exit %d: %s; left %v", got.code, got.stderr, left(t, dir))
	}
	c := start(t, "--offload-optimizer", "file", "--offload-param", "file", "--offload-path", dir, "--steps", "10000000", "--eval-every", "0", "--out", "killed")
	c.until(t, "step ")
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	c.end()
	if n := len(left(t, dir)); n != 2*5 { // two ranks: parameters, gradients, a carry, two moments
		t.Fatalf("the killed run left %d files: %v", n, left(t, dir))
	}
	got := execute(onFile(t, dir, "--out", "next", "--summary", "next.json")...)
	if got.code != 0 || !strings.Contains(got.stderr, "removed what killed runs had left: "+filepath.Join(dir, "zeroshard-tier-rank-000")) {
		t.Errorf("exit %d: %s", got.code, got.stderr)
	}
	if readSummary(t, "next.json").StateSHA256 != readSummary(t, "alone.json").StateSHA256 {
		t.Error("what the killed run left has changed the result")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
}

// A folder that is missing or is no folder: exit code 3 and a line that names rank and path, before the run has left anything.
func TestOffloadPathThatCannotBeUsed(t *testing.T) {
	dir := empty(t)
	if err := os.WriteFile("file", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"nope/deeper", "file", "/proc/nope"} {
		got := execute(onFile(t, path, "--out", "run")...)
		if got.code != exitFile || !strings.Contains(got.stderr, filepath.Base(path)) || !strings.Contains(got.stderr, "rank ") {
			t.Errorf("%s: exit %d: %s", path, got.code, got.stderr)
		}
	}
	if names := files(t, dir); len(names) != 1 {
		t.Errorf("left: %v", names)
	}
}

// A share of the optimizer state may stay on the device, at stage 3; the run's settings have it.
func TestOffloadRatio(t *testing.T) {
	empty(t)
	hash := func(name string, args ...string) string {
		if got := execute(micro(t, append(args, "--quiet", "--out", name, "--summary", name+".json")...)...); got.code != 0 {
			t.Fatalf("%v: exit %d: %s", args, got.code, got.stderr)
		}
		return readSummary(t, name+".json").StateSHA256
	}
	want := hash("plain")
	for _, ratio := range []string{"0.01", "0.5", "1"} {
		if got := hash("ratio-"+ratio, "--offload-optimizer", "host", "--offload-ratio", ratio); got != want {
			t.Errorf("ratio %s: %s, want %s", ratio, got, want)
		}
	}
	var settings map[string]any
	raw, err := os.ReadFile("ratio-0.5/settings.json")
	if err == nil {
		err = json.Unmarshal(raw, &settings)
	}
	if err != nil || settings["offload-ratio"] != 0.5 || settings["offload-optimizer"] != "host" {
		t.Errorf("settings %s, %v", raw, err)
	}
	for _, args := range [][]string{
		{"--offload-ratio", "0.5"}, {"--offload-optimizer", "host", "--offload-ratio", "0"}, {"--offload-optimizer", "host", "--offload-ratio", "1.1"},
		{"--stage", "2", "--offload-optimizer", "host", "--offload-ratio", "0.5"}, {"--offload-param", "host", "--offload-ratio", "0.5"},
	} {
		if got := execute(append([]string{"train", "--model", "micro"}, args...)...); got.code != exitUsage || !strings.Contains(got.stderr, "ratio") {
			t.Errorf("%v: exit %d: %s", args, got.code, got.stderr)
		}
	}
}

// What a tier reports has an exit code of its own, through all that the engine and the peers wrap around it.
func TestExitCodesOfTiers(t *testing.T) {
	disk := &fs.PathError{Op: "fallocate", Path: "d/00-m.tier", Err: syscall.ENOSPC}
	for _, c := range []struct {
		err  error
		code int
	}{
		{&offload.SpaceError{Tier: "file", Path: "d/00-m.tier", Err: disk}, exitFile},
		{&offload.SpaceError{Tier: "host", Free: -1, Err: syscall.ENOMEM}, exitNoFit},
		{&offload.CallError{Tier: "file", Err: &fs.PathError{Op: "read", Err: syscall.EIO}}, exitFile},
		{&offload.CallError{Tier: "file", Err: fmt.Errorf("%w: checksum", offload.ErrCorrupt)}, exitFile},
		{&offload.CallError{Tier: "file", Err: offload.ErrTorn}, exitFile},
		{&offload.CallError{Tier: "file", Err: io.ErrUnexpectedEOF}, exitFile},
		{&offload.KeyError{Tier: "file"}, exitFailed}, // a bug
	} {
		for _, err := range []error{c.err, &zero.OpError{Err: c.err}, &zero.OpError{Err: &collectives.AbortError{Cause: c.err}}} {
			if got := exitCode(err); got != c.code {
				t.Errorf("exit %d, want %d: %v", got, c.code, err)
			}
		}
	}
}

// Memory that is refused when ranks are made has the exit code of what does not fit, and says who holds the rest.
func TestLimitAtRunTime(t *testing.T) {
	cfg, err := gpt.Preset("micro")
	if err != nil {
		t.Fatal(err)
	}
	m, err := gpt.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	_, err = zeroshard.Local(context.Background(), zeroshard.Config{Model: m, Ranks: 2, Stage: 3, GlobalBatch: 2, MicroBatch: 1, Seq: 8},
		zeroshard.WithObservers(func(int) []memory.Observer { return []memory.Observer{memory.NewLimit(300_000)} }))
	if text := complaint(err); exitCode(err) != exitNoFit || !strings.Contains(text, "held: resident") || !strings.Contains(text, "plan line") {
		t.Errorf("exit %d: %s", exitCode(err), text)
	}
}

// Files that are cut off under a run: one line that names rank and step once each, and the file.
func TestDamagedRunNamesRankAndStepOnce(t *testing.T) {
	empty(t)
	dir := t.TempDir()
	c := start(t, "--offload-optimizer", "file", "--offload-param", "file", "--offload-path", dir, "--steps", "10000000", "--eval-every", "0", "--out", "run")
	c.until(t, "step ")
	last := make(chan string)
	go func() {
		text := ""
		for c.stderr.Scan() {
			text = c.stderr.Text()
		}
		last <- text
	}()
	for cut := true; cut; {
		select {
		case text := <-last:
			cut = false
			if strings.Count(text, "rank ") != 1 || strings.Count(text, "step ") != 1 || !strings.Contains(text, dir) || strings.Contains(text, "checkpoint") {
				t.Error(text)
			}
		default:
			paths, _ := filepath.Glob(filepath.Join(dir, "*", "*.tier")) // the run may just remove them
			for _, path := range paths {
				_ = os.Truncate(path, 0)
			}
		}
	}
	if code := c.end(); code != exitFile {
		t.Errorf("exit code %d", code)
	}
}
