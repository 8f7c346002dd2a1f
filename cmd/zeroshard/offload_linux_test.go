package main

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A disk that is read-only or too small: exit code 3 and a line that names the rank, the folder and what is missing, before training.
func TestOffloadDiskThatCannotBeUsed(t *testing.T) {
	for name, c := range map[string]struct {
		flags uintptr
		says  []string
	}{
		"read-only": {unix.MS_RDONLY, []string{"rank ", "read-only file system"}},
		"too small": {0, []string{"no room for ", "rank ", ".tier", " are free", "that are needed in all", "no space left on device"}},
	} {
		t.Run(name, func(t *testing.T) {
			empty(t)
			dir := t.TempDir()
			if err := unix.Mount("tmpfs", dir, "tmpfs", c.flags, "size=64k"); err != nil {
				t.Skipf("mounting needs a privilege: %v", err)
			}
			defer func() {
				if err := unix.Unmount(dir, 0); err != nil {
					t.Error(err)
				}
			}()
			got := execute(onFile(t, dir, "--out", "run")...)
			if got.code != exitFile {
				t.Errorf("exit %d: %s", got.code, got.stderr)
			}
			for _, text := range append(c.says, dir) {
				if !strings.Contains(got.stderr, text) {
					t.Errorf("stderr does not say %q: %s", text, got.stderr)
				}
			}
			if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
				t.Errorf("left: %v, %v", entries, err)
			}
			if _, err := os.Stat("run"); err == nil {
				t.Error("the refused run has a folder")
			}
		})
	}
}
