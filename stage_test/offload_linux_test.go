package stagetest

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"zeroshard"
	"zeroshard/offload"
)

// mounted is a folder with a file system of its own in memory.
func mounted(t *testing.T, flags uintptr, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", flags, "size="+size); err != nil {
		t.Skipf("mounting needs a privilege: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// A disk that is too small is refused before training, with the file, the bytes and the room; nothing stays on it.
func TestOffloadDiskTooSmall(t *testing.T) {
	leaks(t)
	j := allOnFile.config(job(t, "micro", 4, 1, 4, 0))
	j.Offload.Dir = mounted(t, 0, "256k") // a rank rests 134 KiB
	cl, err := zeroshard.Local(context.Background(), j)
	if cl != nil || !errors.Is(err, offload.ErrSpace) || !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("%v, %v", cl, err)
	}
	says(t, err, "rank ", j.Offload.Dir, ".tier", "bytes", "free")
	if left, err := os.ReadDir(j.Offload.Dir); err != nil || len(left) > 0 {
		t.Errorf("left on the disk: %v, %v", left, err)
	}
}

// A folder that cannot be written, or is not there, is refused by name before training.
func TestOffloadFolderThatCannotBeWritten(t *testing.T) {
	for name, dir := range map[string]func(t *testing.T) string{
		"read-only": func(t *testing.T) string { return mounted(t, unix.MS_RDONLY, "1m") },
		"missing":   func(t *testing.T) string { return filepath.Join(t.TempDir(), "nope") },
		"a file":    func(t *testing.T) string { return os.Args[0] },
	} {
		t.Run(name, func(t *testing.T) {
			leaks(t)
			j := allOnFile.config(job(t, "micro", 4, 1, 4, 0))
			j.Offload.Dir = dir(t)
			cl, err := zeroshard.Local(context.Background(), j)
			var path *fs.PathError
			if cl != nil || !errors.As(err, &path) {
				t.Fatalf("%v, %v", cl, err)
			}
			says(t, err, "rank ", j.Offload.Dir)
		})
	}
}

// A disk on which the reserved room is lost and then full: the evict fails with the file's name, and no step comes of it.
func TestOffloadDiskFillsUpInARun(t *testing.T) {
	leaks(t)
	const faulty = 1
	var files tierFiles
	j := allOnFile.config(job(t, "micro", 4, 1, 4, 0))
	j.Offload.Dir = mounted(t, 0, "2m")
	w := mustCrew(t, j, seams{tier: files.wrap(faulty)})
	w.mustStep(t, 1)
	path := files.path(t, "gradient at rest")
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, info.Size()), f.Close()); err != nil {
		t.Skipf("no holes here: %v", err)
	}
	other := filepath.Join(j.Offload.Dir, "other")
	if err := os.WriteFile(other, make([]byte, 4<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	_, errs := w.step(t, context.Background(), 2)
	var call *offload.CallError
	if err := errs[faulty]; !errors.Is(err, syscall.ENOSPC) || !errors.As(err, &call) || call.Path != path || call.Verb != "put" || call.Rank != faulty {
		t.Fatalf("rank %d returned %v", faulty, err)
	}
	says(t, errs[0], "rank 1, step 2, plan line", "evict", path)
	w.close(t)
	if err := os.Remove(other); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(j.Offload.Dir); err != nil || len(left) > 0 {
		t.Errorf("left on the disk: %v, %v", left, err)
	}
}
