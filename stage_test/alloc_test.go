package stagetest

import (
	"context"
	"runtime"
	"testing"
	"time"

	"zeroshard"
	"zeroshard/internal/invariants"
	"zeroshard/models/gpt"
	"zeroshard/optim"
	"zeroshard/zero"
)

// deep is a micro GPT of some layers, so that a plan has more ops with the same sizes.
func deep(t *testing.T, layers int) zeroshard.Config {
	t.Helper()
	m, err := gpt.New(gpt.Config{Layers: layers, Heads: 2, Width: 24, Vocab: 97, Positions: 16, Bias: true})
	if err != nil {
		t.Fatal(err)
	}
	return zeroshard.Config{Model: m, Optimizer: optim.DefaultAdamW(), GlobalBatch: 8, MicroBatch: 1, Seq: 4, Clip: 0.5}
}

// garbage is what a step allocates on average, over all ranks.
func garbage(t *testing.T, j zeroshard.Config) (objects, bytes float64, ops int) {
	t.Helper()
	ctx := context.Background()
	cl, err := zeroshard.Local(ctx, j)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	var leaves []zero.Batch
	for leaf := range 8 {
		leaves = append(leaves, batch(j, 1, leaf))
	}
	step := func() {
		if _, err := cl.Step(ctx, func(leaf int) (zero.Batch, error) { return leaves[leaf], nil }, hyper(1)); err != nil {
			t.Fatal(err)
		}
	}
	step() // the first one fills the collectives' and the kernels' own caches
	const runs = 10
	objects = testing.AllocsPerRun(runs, step)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range runs {
		step()
	}
	runtime.ReadMemStats(&after)
	return objects, float64(after.TotalAlloc-before.TotalAlloc) / runs, len(cl.Program().Train.Ops)
}

// A step allocates a fixed handful of small objects a rank, for the facade's goroutines, batches and report; an op allocates nothing.
func TestStepAllocatesNoGarbage(t *testing.T) {
	if raced {
		t.Skip("the race detector allocates")
	}
	if invariants.Enabled {
		t.Skip("this build poisons dead buffers, each by a closure")
	}
	const objectsRank, bytesRank = 20, 4 << 10
	for _, c := range []cell{{Stage: 3, Ranks: 2, Prefetch: 1, Threads: 2}, {Stage: 0, Ranks: 2}, {Stage: 3, Ranks: 4, Replicas: 2, Recompute: 1}} {
		few, fewBytes, fewOps := garbage(t, c.config(deep(t, 2)))
		many, manyBytes, manyOps := garbage(t, c.config(deep(t, 10)))
		t.Logf("%v: %d ops: %v objects, %.0f bytes; %d ops: %v objects, %.0f bytes", c, fewOps, few, fewBytes, manyOps, many, manyBytes)
		if many > float64(objectsRank*c.Ranks) || manyBytes > float64(bytesRank*c.Ranks) {
			t.Errorf("%v: %v objects of %.0f bytes a step, at most %d of %d a rank are stated", c, many, manyBytes, objectsRank, bytesRank)
		}
		if perOp := (many - few) / float64((manyOps-fewOps)*c.Ranks); perOp > 0.01 {
			t.Errorf("%v: an op allocates %.3f objects: %v in a step of %d ops, %v in one of %d", c, perOp, few, fewOps, many, manyOps)
		}
	}
}

// Goroutines are back to their number after Close, and none is made by a step.
func TestNoGoroutineIsLeft(t *testing.T) {
	leaks(t)
	before := runtime.NumGoroutine()
	ctx := context.Background()
	for _, c := range []cell{{Stage: 3, Ranks: 3, Threads: 2}, {Stage: 1, Ranks: 2, Threads: 1}} {
		j := c.config(job(t, "micro", 6, 1, 4, 0))
		cl, err := zeroshard.Local(ctx, j)
		if err != nil {
			t.Fatal(err)
		}
		running := 0
		for step := 1; step <= 5; step++ {
			if _, err := cl.Step(ctx, func(leaf int) (zero.Batch, error) { return batch(j, step, leaf), nil }, hyper(step)); err != nil {
				t.Fatal(err)
			}
			if n := settled(running); step == 1 {
				running = n
			} else if n > running {
				t.Errorf("%v: %d goroutines after step %d, %d after the first", c, n, step, running)
			}
		}
		if err := cl.Close(); err != nil {
			t.Error(err)
		}
		if n := settled(before); n > before {
			t.Errorf("%v: %d goroutines after Close, %d before", c, n, before)
		}
	}
}

// settled is the number of goroutines, given a moment to end when there are more than most.
func settled(most int) int {
	for range 100 {
		if runtime.NumGoroutine() <= most {
			break
		}
		time.Sleep(time.Millisecond)
	}
	return runtime.NumGoroutine()
}
