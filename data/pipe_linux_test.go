package data_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"zeroshard/data"
)

// A pipe that nobody writes to, a device: refused at once, never waited for.
func TestOpenRefusesWhatIsNoFile(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "train.bin")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, what := range map[string]string{pipe: "a pipe", "/dev/zero": "a device", t.TempDir(): "a folder"} {
		_, err := data.Open(path, 256)
		var at *fs.PathError
		if !errors.As(err, &at) || at.Path != path || !strings.Contains(err.Error(), what+", not a regular file") {
			t.Errorf("%s: %v", path, err)
		}
	}
}
