package main

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// What is no file is refused at once: to open a pipe would wait for a writer, for ever.
func TestDataThatIsNoFile(t *testing.T) {
	dir := empty(t)
	pipe := filepath.Join(t.TempDir(), "train.bin")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, what := range map[string]string{pipe: "a pipe", "/dev/zero": "a device"} {
		got := execute("train", "--data", path)
		if got.code != exitFile || !strings.Contains(got.stderr, path+": "+what+", not a regular file") {
			t.Errorf("exit code %d: %s", got.code, got.stderr)
		}
	}
	if left := files(t, dir); left != nil {
		t.Errorf("left %v", left)
	}
}
