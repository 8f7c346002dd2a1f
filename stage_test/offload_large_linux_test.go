package stagetest

import (
	"bufio"
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"zeroshard"
	"zeroshard/memory"
	"zeroshard/models/gpt"
	"zeroshard/optim"
	"zeroshard/zero"
)

const (
	largeDir   = "ZEROSHARD_TEST_LARGE" // the folder, in the process that trains
	largeLimit = 8 << 30                // bytes of that process
	largeSteps = 2
)

// largeConfig is gpt2-xl, 1.56 billion parameters and 25 GB of model state, on two ranks of a thread each, with everything in files.
func largeConfig(t *testing.T, dir string) zeroshard.Config {
	t.Helper()
	cfg, err := gpt.Preset("gpt2-xl")
	if err != nil {
		t.Fatal(err)
	}
	m, err := gpt.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return zeroshard.Config{Model: m, Optimizer: optim.DefaultAdamW(), Ranks: 2, Stage: 3, Threads: 1, GlobalBatch: 2, MicroBatch: 1, Seq: 32, EvalLeaves: 1,
		Recompute: 1, Prefetch: 1, Clip: 1, Seed: 1, Offload: zeroshard.Offload{Optimizer: zero.FileTier, Param: zero.FileTier, Dir: dir}}
}

// A model of more than 1.5 billion parameters takes real steps in a process of at most 8 GiB, with everything in files. It takes minutes and 25 GB of
// disk in TMPDIR, so it is for make soak.
func TestOffloadLargeModelInFiles(t *testing.T) {
	if os.Getenv("ZEROSHARD_SOAK") == "" {
		t.Skip("two steps of a model of 25 GB: make soak")
	}
	dir := tierDir(t)
	j := largeConfig(t, dir)
	pr, err := zeroshard.Plan(j)
	if err != nil {
		t.Fatal(err)
	}
	var disk unix.Statfs_t
	if err := unix.Statfs(dir, &disk); err != nil {
		t.Fatal(err)
	}
	need := int64(j.Ranks)*pr.Cost().Disk.Holds + 1<<30
	if free := int64(disk.Bavail) * int64(disk.Bsize); free < need {
		t.Skipf("%s has %s free, %s are needed: set TMPDIR", dir, memory.FormatBytes(free), memory.FormatBytes(need))
	}
	cmd := exec.Command(os.Args[0], "-test.run", "^TestOffloadLargeProcess$", "-test.v", "-test.timeout", "3h")
	cmd.Env = append(os.Environ(), largeDir+"="+dir)
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatal(err)
	}
}

// TestOffloadLargeProcess is no test by itself: TestOffloadLargeModelInFiles runs it in a process of its own.
func TestOffloadLargeProcess(t *testing.T) {
	dir := os.Getenv(largeDir)
	if dir == "" {
		t.Skip("runs only in a process of its own")
	}
	ctx, j, start := context.Background(), largeConfig(t, dir), time.Now()
	cl, err := zeroshard.Local(ctx, j)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	cost, params := cl.Program().Cost(), cl.Program().Layout.Numel()
	if params < 1_500_000_000 {
		t.Errorf("only %d parameters", params)
	}
	t.Logf("%d parameters: a rank holds %s on the device and %s on disk, and moves %s a step; ready after %.0fs", params, memory.FormatBytes(cost.Peak()),
		memory.FormatBytes(cost.Disk.Holds), memory.FormatBytes(cost.Disk.Fetched+cost.Disk.Evicted), time.Since(start).Seconds())
	for step := 1; step <= largeSteps; step++ {
		begin := time.Now()
		st, err := cl.Step(ctx, func(leaf int) (zero.Batch, error) { return batch(j, 1, leaf), nil }, optim.Hyper{Step: step, LR: 1e-4})
		if err != nil {
			t.Fatal(err)
		}
		if st.Skipped != nil || !(st.Norm > 0) || math.IsNaN(st.Loss) {
			t.Errorf("step %d: %s", step, report(st))
		}
		t.Logf("step %d: loss %v, norm %v, %.0fs, peak of the process %s", step, st.Loss, st.Norm, time.Since(begin).Seconds(), memory.FormatBytes(peakBytes(t)))
	}
	for _, m := range cl.Memory() {
		if m.Used != m.Planned {
			t.Errorf("rank %d planned %d bytes and used %d", m.Rank, m.Planned, m.Used)
		}
	}
	for _, x := range cl.Tiers() {
		t.Logf("%+v, %+v", x, *x.Files)
		if x.Used != x.Planned {
			t.Errorf("planned %d bytes on disk, used %d", x.Planned, x.Used)
		}
	}
	if peak := peakBytes(t); peak > largeLimit {
		t.Errorf("the process held %s at its peak", memory.FormatBytes(peak))
	}
}

// peakBytes is the most that this process ever had in memory.
func peakBytes(t *testing.T) int64 {
	t.Helper()
	f, err := os.Open("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "VmHWM:"); ok {
			var kib int64
			if _, err := fmt.Sscanf(text, "%d kB", &kib); err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			return kib << 10
		}
	}
	t.Fatal("no VmHWM")
	return 0
}
