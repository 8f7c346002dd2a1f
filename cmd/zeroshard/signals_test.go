package main

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"zeroshard/checkpoint"
)

// command is a run of the command in a process of its own.
type command struct {
	*exec.Cmd
	stdout bytes.Buffer
	stderr *bufio.Scanner
	said   string // of stderr, since until
}

func start(t *testing.T, args ...string) *command {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := &command{Cmd: exec.CommandContext(t.Context(), exe, micro(t, args...)...)}
	c.Env = append(os.Environ(), "ZEROSHARD_IS_COMMAND=1")
	c.Stdout = &c.stdout
	stderr, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	c.stderr = bufio.NewScanner(stderr)
	return c
}

// until reads stderr up to a line with text in it.
func (c *command) until(t *testing.T, text string) {
	t.Helper()
	for c.stderr.Scan() {
		if strings.Contains(c.stderr.Text(), text) {
			return
		}
	}
	t.Fatalf("the command ended without a line that has %q", text)
}

// end reads the rest of stderr and returns the exit code.
func (c *command) end() int {
	for c.stderr.Scan() {
		c.said += c.stderr.Text() + "\n"
	}
	c.Wait()
	return c.ProcessState.ExitCode()
}

func TestFirstSignalSavesAfterTheStep(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1} {
		t.Run(sig.String(), func(t *testing.T) {
			empty(t)
			dir := t.TempDir()
			c := start(t, "--steps", "10000000", "--eval-every", "0", "--save-every", "0", "--summary", "s.json", "--out", "run", "--offload-optimizer", "file", "--offload-path", dir)
			c.until(t, "step ")
			if err := c.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			if got := c.end(); got != 75 {
				t.Errorf("exit code %d, want 75", got)
			}
			s := readSummary(t, "s.json")
			if s.Steps < 1 || s.Steps != len(s.Losses) || len(s.StateSHA256) != 64 {
				t.Errorf("summary after %d steps: %+v", s.Steps, s)
			}
			store := checkpoint.NewStore(checkpoint.OS{}, filepath.Join("run", checkpoint.Folder))
			if step, err := store.Newest(); err != nil || step != s.Steps {
				t.Errorf("saved is step %d, %v; the run ended at %d", step, err, s.Steps)
			}
			if want := "go on with: zeroshard train --out run --resume"; !strings.Contains(c.said, want) {
				t.Errorf("%q is not said:\n%s", want, c.said)
			}
			if !strings.Contains(c.stdout.String(), "used peak") {
				t.Errorf("no report:\n%s", &c.stdout)
			}
			if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
				t.Errorf("tier files left: %v, %v", entries, err)
			}
		})
	}
}

// A step that takes long must not keep the user: the second signal ends the process at once.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	empty(t)
	c := start(t, "--global-batch", "20000", "--micro-batch", "10000", "--out", "run")
	c.until(t, "plan ") // and the first step, of minutes, begins
	c.Process.Signal(syscall.SIGINT)
	c.until(t, "leaving after this step")
	c.Process.Signal(syscall.SIGINT)
	if got := c.end(); got != 130 {
		t.Errorf("exit code %d, want 130", got)
	}
	if _, err := os.Stat("run/summary.json"); err == nil {
		t.Error("the run has a summary, as if its step had ended")
	}
}

// Whoever starts a run under nohup does not want HUP to end it.
func TestIgnoredHangUpStaysIgnored(t *testing.T) {
	empty(t)
	signal.Ignore(syscall.SIGHUP)
	defer signal.Reset(syscall.SIGHUP)
	s := watch(io.Discard)
	defer s.close()
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for _, sig := range []os.Signal{syscall.SIGHUP, syscall.SIGTERM} {
		if err := self.Signal(sig); err != nil {
			t.Fatal(err)
		}
	}
	<-s.stop
	if err := s.err(); !signalled(syscall.SIGTERM)(err) {
		t.Errorf("%v: HUP was heard", err)
	}
}
