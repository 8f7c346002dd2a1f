package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A disk that is full at the second save: the run ends with the file code and says which step is saved, what was written of the other is
// removed, and where there is room again the run goes on.
func TestDiskFullWhileSaving(t *testing.T) {
	empty(t)
	if err := os.Mkdir("run", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", "run", "tmpfs", 0, "size=400k"); err != nil {
		t.Skipf("mounting needs a privilege: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount("run", 0); err != nil {
			t.Error(err)
		}
	})
	args := micro(t, "--out", "run", "--quiet", "--save-every", "1", "--keep-saves", "1") // a step takes 230 KB
	got := refused(t, exitFile, []string{"step 2 is not saved, the newest saved step is 1", "no space left"}, args...)
	if n := strings.Count(got.stderr, "\n"); n > 3 {
		t.Errorf("%d lines:\n%s", n, got.stderr)
	}
	if at := files(t, "run/checkpoints"); slices.ContainsFunc(at, func(n string) bool { return strings.HasPrefix(n, ".") }) || !slices.Equal(steps(t, "run"), []int{1}) {
		t.Errorf("in the folder: %v", at)
	}
	ok(t, "checkpoint", "verify", "run")
	refused(t, exitFile, []string{"step 2 is not saved"}, "train", "--out", "run", "--resume", "--quiet")
	if err := unix.Mount("tmpfs", "run", "tmpfs", unix.MS_REMOUNT, "size=4m"); err != nil {
		t.Fatal(err)
	}
	ok(t, "train", "--out", "run", "--resume", "--quiet")
	ok(t, micro(t, "--out", "whole", "--quiet")...)
	if a, b := readSummary(t, "run/summary.json"), readSummary(t, "whole/summary.json"); a.StateSHA256 != b.StateSHA256 || fmt.Sprint(steps(t, "run")) != "[3]" {
		t.Errorf("%v, steps %v", a, steps(t, "run"))
	}
}

// A folder that cannot be written to is refused before training, and so is a run's folder on a disk that is read-only.
func TestSavesIntoAReadOnlyFolder(t *testing.T) {
	empty(t)
	ok(t, micro(t, "--out", "run", "--quiet", "--save-every", "1", "--stop-at", "2")...)
	if err := unix.Mount("run", "run", "", unix.MS_BIND, ""); err != nil {
		t.Skipf("mounting needs a privilege: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount("run", 0); err != nil {
			t.Error(err)
		}
	})
	if err := unix.Mount("", "run", "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Skipf("remounting: %v", err)
	}
	got := refused(t, exitFile, []string{"run/", "read-only file system"}, "train", "--out", "run", "--resume", "--quiet")
	if n := strings.Count(got.stderr, "\n"); n != 1 {
		t.Errorf("%d lines:\n%s", n, got.stderr)
	}
	ok(t, "checkpoint", "verify", "run")
	ok(t, "checkpoint", "ls", "run")
	refused(t, exitFile, []string{"read-only file system"}, "checkpoint", "prune", "run", "--keep", "1")
}
