package stagetest

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"zeroshard"
	"zeroshard/kernels"
	kcpu "zeroshard/kernels/cpu"
	"zeroshard/kernels/ref"
	"zeroshard/prng"
	"zeroshard/zero"
)

// reference is the arithmetic of the oracle: that of the ranks, on one thread.
func reference() kernels.Backend { return kcpu.New(nil) }

// Stage 0 on one rank agrees bit for bit with the oracle.
func TestOneRankEqualsOracle(t *testing.T) {
	for _, c := range []struct {
		leaves, micro int
		dropout       float32
	}{{1, 1, 0}, {8, 1, 0}, {5, 2, 0}, {7, 1, 0.1}, {12, 1, 0}} {
		t.Run(fmt.Sprintf("%d leaves of %d, dropout %v", c.leaves, c.micro, c.dropout), func(t *testing.T) {
			j := plain.config(job(t, "micro", c.leaves, c.micro, 16, c.dropout))
			got, err := train(j)
			if err != nil {
				t.Fatal(err)
			}
			o := newOracle(j, reference())
			for step := 1; step <= steps; step++ {
				loss, norm := o.step(hyper(step), func(leaf int) zero.Batch { return batch(j, step, leaf) })
				if loss != got.losses[step-1] || norm != got.norms[step-1] {
					t.Errorf("step %d: loss %v and norm %v, the oracle has %v and %v", step, got.losses[step-1], got.norms[step-1], loss, norm)
				}
			}
			if want := o.sha256(); got.hash != want {
				t.Errorf("state %s, the oracle has %s", got.hash, want)
			}
		})
	}
}

// Every instruction set, and the readable truth, give the same bits on every layout: each its own.
func TestSameBitsOnEveryKernelPath(t *testing.T) {
	backends := map[string]func() kernels.Backend{"ref": func() kernels.Backend { return ref.New() }}
	for _, name := range kcpu.Paths() {
		backends[name] = func() kernels.Backend {
			k, err := kcpu.NewPath(nil, name)
			must(err)
			return k
		}
	}
	for name, backend := range backends {
		t.Run(name, func(t *testing.T) {
			j := job(t, "micro", 5, 2, 16, 0.1)
			o := newOracle(j, backend())
			for step := 1; step <= steps; step++ {
				o.step(hyper(step), func(leaf int) zero.Batch { return batch(j, step, leaf) })
			}
			want := o.sha256()
			for _, c := range []cell{plain, {Stage: 1, Ranks: 3, Replicas: 1}, {Stage: 3, Ranks: 2, Replicas: 1, Prefetch: 1, Recompute: 1}} {
				got, err := train(c.config(j), zeroshard.WithKernels(func(int, kernels.Backend) kernels.Backend { return backend() }))
				if err != nil || got.hash != want {
					t.Errorf("%v: %v (%v), the oracle has %.12s", c, got, err, want)
				}
			}
		})
	}
}

// draw picks a random cell that is legal for a number of leaves.
func draw(k prng.Key, leaves int) cell {
	n := uint64(0)
	pick := func(from ...int) int { n++; return from[k.Intn(n, len(from))] }
	c := cell{Stage: pick(0, 1, 2, 3), Ranks: pick(1, 2, 3, 4, 5, 8), Replicas: 1, Prefetch: pick(0, 1, 2), Recompute: pick(0, 1, 2),
		Threads: pick(1, 2), Threshold: pick(0, 0, 30, 5000), KeepLast: pick(0, 1) == 1, Window: pick(0, 1)}
	tiers := []string{"", "", zero.HostTier, zero.FileTier}
	if optim, param := pick(0, 1, 2, 3), pick(0, 1, 2, 3); c.Stage > 0 {
		c.Optim = tiers[optim]
		if c.Stage == 3 {
			c.Param = tiers[param]
		}
	}
	for c.Ranks > leaves {
		c.Ranks = pick(1, 2, 3, 4, 5, 8)
	}
	if r := pick(1, 1, 2, 4); c.Ranks%r == 0 && leaves%r == 0 && (leaves/r)&(leaves/r-1) == 0 && c.Ranks/r <= leaves/r {
		c.Replicas = r
	}
	if ratio := pick(0, 0, 1, 3, 5, 9); c.Stage == 3 && c.Optim != "" {
		c.Ratio = float64(ratio) / 10
	}
	return c
}

// shrink takes one choice after the other back to plain, as long as the cell still fails.
func shrink(c cell, fails func(cell) bool) cell {
	for _, simpler := range []func(*cell){
		func(c *cell) { c.Ratio = 0 }, func(c *cell) { c.Param = "" }, func(c *cell) { c.Optim, c.Ratio = "", 0 }, func(c *cell) { c.KeepLast = false }, func(c *cell) { c.Threshold = 0 }, func(c *cell) { c.Threads = 1 },
		func(c *cell) { c.Recompute = 0 }, func(c *cell) { c.Prefetch = 0 }, func(c *cell) { c.Window = 0 },
		func(c *cell) { c.Ranks /= c.Replicas; c.Replicas = 1 }, func(c *cell) { c.Ranks = min(c.Ranks, 2) }, func(c *cell) { c.Ranks = 1 },
		func(c *cell) { c.Stage = min(c.Stage, 2) }, func(c *cell) { c.Stage = min(c.Stage, 1) }, func(c *cell) { c.Stage = 0 },
	} {
		s := c
		if simpler(&s); s != c && fails(s) {
			c = s
		}
	}
	return c
}

// The shrinker keeps what makes a cell fail and takes the rest away.
func TestShrink(t *testing.T) {
	start := cell{Stage: 3, Ranks: 8, Replicas: 2, Prefetch: 2, Recompute: 1, Threads: 2, Threshold: 30, KeepLast: true, Window: 1}
	for _, c := range []struct {
		name  string
		fails func(cell) bool
		want  cell
	}{
		{"always", func(cell) bool { return true }, plain},
		{"prefetch on two ranks", func(c cell) bool { return c.Prefetch > 0 && c.Ranks > 1 }, cell{Ranks: 2, Replicas: 1, Threads: 1, Prefetch: 2}},
		{"replicas at stage 3", func(c cell) bool { return c.Replicas == 2 && c.Stage == 3 && c.Ranks%2 == 0 }, cell{Stage: 3, Ranks: 2, Replicas: 2, Threads: 1}},
		{"only as drawn", func(c cell) bool { return c == start }, start},
	} {
		if got := shrink(start, c.fails); got != c.want {
			t.Errorf("%s: shrunk to %v, want %v", c.name, got, c.want)
		}
	}
}

// metamorphic draws cells and demands that each leaves the same state, losses, norms and evaluation as the plain one.
func metamorphic(t *testing.T, j zeroshard.Config, cells int, seed uint64) {
	leaves := j.GlobalBatch / j.MicroBatch
	want, err := train(plain.config(j))
	if err != nil {
		t.Fatal(err)
	}
	for i := range cells {
		c := draw(prng.New(seed).Sub(uint64(i)), leaves)
		got, err := train(c.config(j))
		if err == nil && got.equal(want) {
			continue
		}
		least := shrink(c, func(c cell) bool {
			if _, err := zeroshard.Plan(c.config(j)); err != nil {
				return false // not a simpler cell, but none at all
			}
			got, err := train(c.config(j))
			refused := errors.Is(err, zero.ErrOptions) || errors.Is(err, zero.ErrStrategy)
			return !refused && (err != nil || !got.equal(want))
		})
		t.Fatalf("seed %d, cell %d: %v\ngot  %v (%v)\nwant %v\nleast cell that fails: %v", seed, i, c, got, err, want, least)
	}
}

// seed is printed, and can be given as ZEROSHARD_SEED to play a failure again.
func seed(t *testing.T) uint64 {
	s := uint64(time.Now().UnixNano())
	if v := os.Getenv("ZEROSHARD_SEED"); v != "" {
		n, err := strconv.ParseUint(v, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		s = n
	}
	t.Logf("ZEROSHARD_SEED=%d", s)
	return s
}

// soak is the number of cells to draw where n is usual: few in a short run, ZEROSHARD_SOAK times as many under make soak.
func soak(n int) int {
	if v := os.Getenv("ZEROSHARD_SOAK"); v != "" {
		times, err := strconv.Atoi(v)
		must(err)
		return n * times
	}
	if testing.Short() {
		return max(n/10, 4)
	}
	return n
}

// Same bits: stage × world × accumulation × window × prefetch × recompute × threads × mesh × threshold, clipping on.
func TestSameBitsMetamorphic(t *testing.T) {
	s := seed(t)
	for _, c := range []struct {
		leaves, cells int
		dropout       float32
	}{{8, 160, 0}, {8, 20, 0.2}, {6, 20, 0}, {11, 20, 0}, {16, 20, 0}} {
		t.Run(fmt.Sprintf("%d leaves, dropout %v", c.leaves, c.dropout), func(t *testing.T) {
			metamorphic(t, job(t, "micro", c.leaves, 1, 16, c.dropout), soak(c.cells), s)
		})
	}
}

// The grid that users would try first, on the tiny model: every stage on 1, 2, 3, 4 and 8 ranks.
func TestSameBitsTinyGrid(t *testing.T) {
	if testing.Short() {
		t.Skip("a grid of 20 cells of the tiny model")
	}
	j := job(t, "tiny", 8, 1, 32, 0)
	want, err := train(plain.config(j))
	if err != nil {
		t.Fatal(err)
	}
	for stage := range 4 {
		for _, ranks := range []int{1, 2, 3, 4, 8} {
			c := cell{Stage: stage, Ranks: ranks, Replicas: 1, Prefetch: 1, Threads: 1 + ranks%2}
			got, err := train(c.config(j))
			if err != nil || !got.equal(want) {
				t.Errorf("%v:\ngot  %v (%v)\nwant %v", c, got, err, want)
			}
		}
	}
}
