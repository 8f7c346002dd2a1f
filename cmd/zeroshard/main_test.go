package main

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"zeroshard/prng"
	"zeroshard/train"
)

// TestMain lets the test binary be the command, for tests that need a process.
func TestMain(m *testing.M) {
	if os.Getenv("ZEROSHARD_IS_COMMAND") != "" {
		main()
	}
	os.Exit(m.Run())
}

// outcome is what one command line did.
type outcome struct {
	code           int
	stdout, stderr string
}

func execute(args ...string) outcome {
	var stdout, stderr bytes.Buffer
	code := Execute(args, strings.NewReader(""), &stdout, &stderr)
	return outcome{code, stdout.String(), stderr.String()}
}

// empty makes an empty folder the current one, so that a test sees everything that is written.
func empty(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Chdir(dir)
	return dir
}

// tokens writes a file of ids for the micro model.
func tokens(t *testing.T, n int) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "train.bin")
	var raw []byte
	for i := range n {
		raw = binary.LittleEndian.AppendUint16(raw, uint16(prng.New(1).Intn(uint64(i), 97)))
	}
	if err := os.WriteFile(path, raw, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// micro is a training run that takes milliseconds.
func micro(t *testing.T, more ...string) []string {
	t.Helper()
	return append([]string{"train", "--model", "micro", "--data", tokens(t, 500), "--steps", "3", "--warmup", "1", "--seed", "7"}, more...)
}

func readSummary(t *testing.T, path string) (s train.Summary) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	return s
}

func files(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err == nil && path != dir {
			name, _ := filepath.Rel(dir, path)
			names = append(names, filepath.ToSlash(name))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
