package stagetest

import (
	"context"
	"math"
	"slices"
	"sync"
	"testing"

	"zeroshard"
	"zeroshard/optim"
	"zeroshard/zero"
)

// Reports against other engines, each a number in their trackers, as tests: the case that was reported or the family around it.

// plainNorm is the norm of the mean gradient of a step, by a loop in float64 over the oracle's gradients: not the engine's way.
func plainNorm(j zeroshard.Config, step int) float64 {
	o := newOracle(j, reference())
	losses := make([][]float64, j.GlobalBatch/j.MicroBatch)
	g := o.tree(0, len(losses), func(l int) gradients {
		losses[l] = make([]float64, 2)
		return o.leaf(step, l, batch(j, step, l), losses[l])
	})
	var squares, tokens float64
	for _, l := range losses {
		tokens += l[1]
	}
	for _, p := range o.params {
		for _, v := range g[p.Name] {
			squares += float64(v) * float64(v)
		}
	}
	return math.Sqrt(squares) / tokens
}

// norms trains one step in each cell and returns the norm that all ranks report.
func norms(t *testing.T, j zeroshard.Config, cells []cell) []float64 {
	t.Helper()
	var out []float64
	for _, c := range cells {
		w := mustCrew(t, c.config(j), seams{})
		out = append(out, w.mustStep(t, 1).Norm)
		w.close(t)
	}
	return out
}

// The norm depended on the strategy, so clipping changed training. Here it is one number for every stage and world, the global one.
func TestPain01NormIsTheReferences(t *testing.T) {
	j := job(t, "micro", 8, 1, 16, 0)
	cells := grid(1, 2, 3, 5, 8)
	got, want := norms(t, j, cells), plainNorm(j, 1)
	for i, c := range cells {
		if got[i] != got[0] || math.Abs(got[i]-want) > 1e-9*want {
			t.Errorf("%v: norm %v, one rank has %v, a plain loop %v", c, got[i], got[0], want)
		}
	}
	if want <= j.Clip {
		t.Errorf("norm %v: it must be above the clip of %v, or nothing is clipped", want, j.Clip)
	}
}

// Clipping looked at the norm of local shards, so each rank clipped by its own factor. Here all ranks report the norm of the whole.
func TestPain02AllRanksHaveTheGlobalNorm(t *testing.T) {
	j := job(t, "micro", 6, 1, 16, 0)
	want := plainNorm(j, 1)
	for _, c := range []cell{{Stage: 3, Ranks: 3}, {Stage: 2, Ranks: 5}, {Stage: 1, Ranks: 2}} {
		w := mustCrew(t, c.config(j), seams{})
		stats, errs := w.step(t, context.Background(), 1)
		for r, st := range stats {
			if errs[r] != nil || math.Abs(st.Norm-want) > 1e-9*want {
				t.Errorf("%v: rank %d has norm %v (%v), the whole has %v", c, r, st.Norm, errs[r], want)
			}
		}
	}
}

// Replicated parameters counted once for each rank in the norm. Here parameters under the threshold count once, as sharded ones do.
func TestPain03PersistentParametersCountOnce(t *testing.T) {
	j := job(t, "micro", 8, 1, 16, 0)
	var cells []cell
	for _, threshold := range []int{0, 30, 100, 2000, 1 << 20} {
		for _, ranks := range []int{2, 3, 4} {
			cells = append(cells, cell{Stage: 3, Ranks: ranks, Threshold: threshold}, cell{Stage: 2, Ranks: ranks, Threshold: threshold})
		}
	}
	cells = append(cells, cell{Stage: 3, Ranks: 4, Replicas: 2, Threshold: 100})
	for i, norm := range norms(t, j, cells) {
		if want := plainNorm(j, 1); math.Abs(norm-want) > 1e-9*want {
			t.Errorf("%v: norm %v, a plain loop has %v", cells[i], norm, want)
		}
	}
}

// The norm was inflated at stage 0 only.
func TestPain04StageZeroHasTheSameNorm(t *testing.T) {
	j := job(t, "micro", 8, 1, 16, 0)
	for _, ranks := range []int{1, 2, 4, 8} {
		var cells []cell
		for stage := range 4 {
			cells = append(cells, cell{Stage: stage, Ranks: ranks})
		}
		if got := norms(t, j, cells); got[0] != got[1] || got[0] != got[2] || got[0] != got[3] {
			t.Errorf("%d ranks: norms by stage %v", ranks, got)
		}
	}
}

// A tiny model with tied layers had different losses at each stage; stage 1 did not converge as 0 and 2 do. Here the curves are equal, and
// the one that the oracle draws.
func TestPain05And06TiedLayersSameCurves(t *testing.T) {
	againstOracle(t, job(t, "micro", 4, 2, 16, 0), grid(1, 2, 3, 4))
	againstOracle(t, oddJob(&odd{vocab: 29, dim: 5, layers: 2}, 4, optim.DefaultAdamW()), grid(1, 2, 3, 4))
}

// Stages agreed without accumulation and differed with it.
func TestPain07StageTimesAccumulation(t *testing.T) {
	for _, leaves := range []int{2, 4, 6, 8, 10, 16} { // 1, 2, 3, 4, 5, 8 micro-batches on each of two ranks
		j := job(t, "micro", leaves, 1, 8, 0)
		var cells []cell
		for stage := range 4 {
			cells = append(cells, cell{Stage: stage, Ranks: 2}, cell{Stage: stage, Ranks: 2, Window: 1})
		}
		againstOracle(t, j, cells)
	}
}

// The curve changed with the number of micro-batches. Here 32 sequences are one batch: on 1 rank 32 times, on 2 ranks 16 times, on 32
// ranks at once give the same bits; micro-batches of another size sum in another order and give the same but for rounding.
func TestPain08Splits(t *testing.T) {
	split := func(micro int) zeroshard.Config { return job(t, "micro", 32/micro, micro, 4, 0) }
	// The same 32 sequences, cut into micro-batches of any size.
	sequences := func(micro, step, leaf int) (b zero.Batch) {
		one := split(1)
		for i := range micro {
			s := batch(one, step, leaf*micro+i)
			b.Tokens, b.Targets = append(b.Tokens, s.Tokens...), append(b.Targets, s.Targets...)
		}
		return b
	}
	run := func(stage, ranks, micro int) (losses []float64, hash string) {
		t.Helper()
		ctx := context.Background()
		cl, err := zeroshard.Local(ctx, cell{Stage: stage, Ranks: ranks}.config(split(micro)))
		if err != nil {
			t.Fatal(err)
		}
		defer cl.Close()
		for step := 1; step <= steps; step++ {
			st, err := cl.Step(ctx, func(leaf int) (zero.Batch, error) { return sequences(micro, step, leaf), nil }, hyper(step))
			if err != nil {
				t.Fatal(err)
			}
			losses = append(losses, st.Loss)
		}
		hash, err = cl.StateSHA256(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return losses, hash
	}
	stages := []int{0, 3, 1, 2}
	if testing.Short() {
		stages = stages[:2]
	}
	for _, stage := range stages {
		want, hash := run(stage, 1, 1)
		for _, ranks := range []int{2, 32} {
			if got, h := run(stage, ranks, 1); h != hash || !slices.Equal(got, want) {
				t.Errorf("stage %d: losses %v on %d ranks, %v on one; the same state: %t", stage, got, ranks, want, h == hash)
			}
		}
		for _, micro := range []int{2, 16, 32} {
			got, _ := run(stage, 1, micro)
			for i := range got {
				if math.Abs(got[i]-want[i]) > 1e-5*want[i] {
					t.Errorf("stage %d: losses %v with micro-batches of %d, %v with 1", stage, got, micro, want)
				}
			}
		}
	}
}

// A flag that stopped communication covered the wrong part of the loop, and micro-batches were lost. Here each counts: another token in
// any one of them is another norm, and another state.
func TestPain10NoMicroBatchIsLost(t *testing.T) {
	for _, c := range []cell{{Stage: 0, Ranks: 2}, {Stage: 1, Ranks: 3, Window: 1}, {Stage: 2, Ranks: 2}, {Stage: 3, Ranks: 3}} {
		j := c.config(job(t, "micro", 7, 1, 4, 0))
		seen := map[string]int{}
		for changed := -1; changed < 7; changed++ {
			cl, err := zeroshard.Local(context.Background(), j)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := cl.Step(context.Background(), func(leaf int) (zero.Batch, error) {
				b := batch(j, 1, leaf)
				if leaf == changed {
					b.Targets[0] = (b.Targets[0] + 1) % 97
				}
				return b, nil
			}, hyper(1)); err != nil {
				t.Fatal(err)
			}
			hash, err := cl.StateSHA256(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if other, ok := seen[hash]; ok {
				t.Errorf("%v: the state is the same with a token changed in micro-batch %d and %d (-1: none)", c, changed, other)
			}
			seen[hash] = changed
			if err := cl.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// Accumulation assumed eight devices in silence. Here the global batch is the setting: on any world each micro-batch is asked for once, and
// the step counts the same tokens.
func TestPain11GlobalBatchIsFixed(t *testing.T) {
	j := job(t, "micro", 8, 1, 4, 0)
	tokens := 0
	for leaf := range 8 {
		for _, target := range batch(j, 1, leaf).Targets {
			if target >= 0 {
				tokens++
			}
		}
	}
	for _, c := range grid(1, 2, 3, 5, 8) {
		asked := make([]int, 8)
		var mu sync.Mutex
		cl, err := zeroshard.Local(context.Background(), c.config(j))
		if err != nil {
			t.Fatal(err)
		}
		st, err := cl.Step(context.Background(), func(leaf int) (zero.Batch, error) {
			mu.Lock()
			defer mu.Unlock()
			asked[leaf]++
			return batch(j, 1, leaf), nil
		}, hyper(1))
		if err != nil || st.Tokens != tokens || slices.Max(asked) != 1 || slices.Min(asked) != 1 {
			t.Errorf("%v: %d tokens of %d, micro-batches asked for %v times, %v", c, st.Tokens, tokens, asked, err)
		}
		if err := cl.Close(); err != nil {
			t.Error(err)
		}
	}
}

// The loss was a mean of means of ranks with different numbers of valid tokens. Here it is the mean over all valid tokens, and so is the
// gradient: a rank with one valid token has no more weight than that.
func TestPain12MeanOverAllTokens(t *testing.T) {
	j := job(t, "micro", 4, 1, 16, 0)
	// Micro-batch 0 has one valid target, the others all.
	uneven := func(leaf int) zero.Batch {
		b := batch(j, 1, leaf)
		for i := range b.Targets {
			if b.Targets[i] < 0 {
				b.Targets[i] = 1
			}
			if leaf == 0 && i > 0 {
				b.Targets[i] = -1
			}
		}
		return b
	}
	o := newOracle(j, reference())
	var total, means float64
	for leaf := range 4 {
		loss := make([]float64, 2)
		o.leaf(1, leaf, uneven(leaf), loss)
		total, means = total+loss[0], means+loss[0]/loss[1]/4
	}
	want := total / (1 + 3*16)
	if math.Abs(want-means) < 1e-3 {
		t.Fatalf("the mean over tokens %v and the mean of means %v must differ for this to be a test", want, means)
	}
	loss, norm := newOracle(j, reference()).step(hyper(1), uneven)
	for _, c := range grid(1, 2, 3, 4) {
		cl, err := zeroshard.Local(context.Background(), c.config(j))
		if err != nil {
			t.Fatal(err)
		}
		st, err := cl.Step(context.Background(), func(leaf int) (zero.Batch, error) { return uneven(leaf), nil }, hyper(1))
		if err != nil || st.Tokens != 49 || math.Abs(st.Loss-want) > 1e-12*want || st.Loss != loss || st.Norm != norm {
			t.Errorf("%v: %d tokens, loss %v and norm %v (%v); the mean over tokens is %v, the oracle's norm %v", c, st.Tokens, st.Loss, st.Norm, err, want, norm)
		}
		if err := cl.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Best-of decisions made on one rank alone: some saved while others went on. Here every rank has the same figures of every step and
// evaluation, so whatever is decided from them is decided alike.
func TestPain52EveryRankHasTheSameFigures(t *testing.T) {
	for _, c := range append(grid(2, 3, 5), cell{Stage: 3, Ranks: 4, Replicas: 2}) {
		w := mustCrew(t, c.config(job(t, "micro", 8, 1, 4, 0)), seams{})
		for step := 1; step <= 2; step++ {
			w.mustStep(t, step) // compares the ranks
		}
		losses := make([]zero.Loss, len(w.engines))
		within(t, func() {
			errs := each(len(w.engines), func(r int) (err error) {
				var micro []zero.Batch
				for _, leaf := range w.engines[r].Program().Eval.Leaves(r) {
					micro = append(micro, batch(w.configs[r], 0, max(leaf, 0)))
				}
				losses[r], err = w.engines[r].Eval(context.Background(), micro)
				return err
			})
			for r, err := range errs {
				if err != nil || losses[r] != losses[0] || losses[r].Tokens == 0 {
					t.Errorf("%v: rank %d has %+v (%v), rank 0 %+v", c, r, losses[r], err, losses[0])
				}
			}
		})
		w.close(t)
	}
}
