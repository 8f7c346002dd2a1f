package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// full is a disk with room for so many bytes.
type full struct{ room int }

func (f *full) Write(p []byte) (int, error) {
	if len(p) > f.room {
		return 0, &os.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.ENOSPC}
	}
	f.room -= len(p)
	return len(p), nil
}

// A command whose results cannot be written has failed, whichever it is.
func TestOutputThatFails(t *testing.T) {
	savedRun(t)
	in := documents(t, 12)
	text := filepath.Join(in, "00.txt")
	hf := byteModel(t)
	for _, line := range []string{
		"", "--help", "version", "plan --model micro", "plan --model micro --json", "checkpoint", "checkpoint ls run", "checkpoint ls run --json", "checkpoint inspect run",
		"checkpoint inspect run --json", "checkpoint verify run", "checkpoint diff run run", "checkpoint diff " + step2 + " " + step4, "checkpoint diff --all " + step2 + " " + step4,
		"checkpoint prune run --keep 2", "checkpoint consolidate run --out whole", "checkpoint export run --hf exported", "checkpoint import " + hf + " --out imported",
		"prepare " + text + " -o prepared --tokenizer bytes", "eval --from " + hf + " --data " + text, "eval --json --from " + hf + " --data " + text,
		"generate --from " + hf + " --prompt x --max-tokens 3", "generate --json --from " + hf + " --prompt x --max-tokens 3",
		"train --model tiny --seq 16 --steps 1 --warmup 1 --out trained --data " + text,
	} {
		var stderr bytes.Buffer
		code := Execute(strings.Fields(line), strings.NewReader(""), &full{}, &stderr)
		differs := strings.HasPrefix(line, "checkpoint diff") && strings.Contains(line, step2)
		if differs && code == exitFailed { // its own answer counts
			continue
		}
		if code != exitFile || !strings.Contains(stderr.String(), "standard output: write /dev/stdout: no space left on device") {
			t.Errorf("%s: exit code %d, stderr %q", line, code, stderr.String())
		}
	}
	if _, err := os.Stat("trained/summary.json"); err != nil {
		t.Errorf("the run did not come to its end: %v", err)
	}
	// The disk is full in the middle.
	var stderr bytes.Buffer
	if code := Execute(strings.Fields("checkpoint ls run"), strings.NewReader(""), &full{100}, &stderr); code != exitFile {
		t.Errorf("exit code %d, %s", code, &stderr)
	}
}
