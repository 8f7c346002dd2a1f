package stagetest

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"testing"

	"zeroshard"
	"zeroshard/memory"
	"zeroshard/models/gpt"
	"zeroshard/optim"
	"zeroshard/zero"
)

// What a process may hold outside its arenas: the Go heap with the batches, the reports and the chunks of initial values, stacks, and
// the kernel's tables of pages.
const (
	outsideProcess = 16 << 20
	outsideRank    = 4 << 20
)

// Resident memory of the process grows by the arenas and by little else; and what the arenas have reserved is really there. The job is
// the small preset in short sequences, so that the arenas are large and a step is short.
func TestResidentMemoryOutsideArenasIsBounded(t *testing.T) {
	if raced {
		t.Skip("the race detector keeps several bytes for each byte of ours")
	}
	cfg, err := gpt.Preset("small")
	if err != nil {
		t.Fatal(err)
	}
	if testing.Short() {
		cfg.Layers, cfg.Vocab = 2, 5000
	}
	m, err := gpt.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []cell{{Stage: 3, Ranks: 2, Prefetch: 1}, {Stage: 0, Ranks: 1}, {Stage: 3, Ranks: 4}} {
		t.Run(c.String(), func(t *testing.T) {
			j := c.config(zeroshard.Config{Model: m, Optimizer: optim.DefaultAdamW(), GlobalBatch: 4, MicroBatch: 1, Seq: 4, Seed: 1})
			debug.FreeOSMemory()
			before := residentBytes(t)
			ctx := context.Background()
			cl, err := zeroshard.Local(ctx, j)
			if err != nil {
				t.Fatal(err)
			}
			defer cl.Close()
			leaf := func(step int) func(int) (zero.Batch, error) {
				return func(leaf int) (zero.Batch, error) { return batch(j, step, leaf), nil }
			}
			for step := 1; step <= 2; step++ {
				if _, err := cl.Step(ctx, leaf(step), hyper(step)); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := cl.Eval(ctx, leaf(0)); err != nil {
				t.Fatal(err)
			}
			var arenas, scratch int64
			for _, m := range cl.Memory() {
				arenas += m.Used
				scratch += cl.Program().Cost().Scratch
			}
			grown := residentBytes(t) - before
			bound := int64(outsideProcess + c.Ranks*outsideRank)
			t.Logf("resident memory grew by %s: arenas %s, outside %s, bound %s", memory.FormatBytes(grown), memory.FormatBytes(arenas),
				memory.FormatBytes(grown-arenas), memory.FormatBytes(bound))
			if grown > arenas+bound {
				t.Errorf("%d bytes outside the arenas, at most %d are stated", grown-arenas, bound)
			}
			// Kernel scratch is sized for the largest shapes: a small job does not reach all of it.
			if grown < arenas-scratch-arenas/100 {
				t.Errorf("resident memory grew by %d bytes, less than the arenas' %d: they hold pages that no step touches", grown, arenas)
			}
		})
	}
}

// residentBytes is the resident set of this process.
func residentBytes(t *testing.T) int64 {
	t.Helper()
	runtime.GC()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skipf("resident memory is not known here: %v", err)
	}
	var size, resident int64
	if _, err := fmt.Sscan(string(text), &size, &resident); err != nil {
		t.Fatalf("/proc/self/statm is %q: %v", text, err)
	}
	return resident * int64(os.Getpagesize())
}
