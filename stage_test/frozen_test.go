package stagetest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"zeroshard"
	"zeroshard/optim"
	"zeroshard/prng"
	"zeroshard/zero"
)

// optimizers are all there are: with two states, one, and none.
var optimizers = map[string]optim.Optimizer{
	"adamw": optim.DefaultAdamW(), "sgd with momentum": optim.SGD{Momentum: 0.9, Decay: 0.01}, "sgd": optim.SGD{Decay: 0.01},
}

// againstOracle trains every cell and demands the oracle's losses, norms and state.
func againstOracle(t *testing.T, j zeroshard.Config, cells []cell) {
	t.Helper()
	o := newOracle(j, reference())
	var losses, norms []float64
	for step := 1; step <= steps; step++ {
		loss, norm := o.step(hyper(step), func(leaf int) zero.Batch { return batch(j, step, leaf) })
		losses, norms = append(losses, loss), append(norms, norm)
	}
	want := o.sha256()
	for _, c := range cells {
		got, err := train(c.config(j))
		if err != nil {
			t.Errorf("%v: %v", c, err)
		} else if !slices.Equal(got.losses, losses) || !slices.Equal(got.norms, norms) || got.hash != want {
			t.Errorf("%v:\ngot    %v\noracle %.12s… losses %v norms %v", c, got, want, losses, norms)
		}
	}
}

// grid is every stage on every world.
func grid(worlds ...int) (cells []cell) {
	for stage := range 4 {
		for _, ranks := range worlds {
			cells = append(cells, cell{Stage: stage, Ranks: ranks, Replicas: 1, Threads: 1, Prefetch: stage % 3})
		}
	}
	return cells
}

// Frozen parameters, and an optimizer with two states, one and none, at every stage.
func TestSameBitsFrozenAndOptimizers(t *testing.T) {
	for name, o := range optimizers {
		t.Run(name, func(t *testing.T) {
			j := oddJob(&odd{vocab: 31, dim: 7, layers: 4, freeze: true}, 6, o)
			cells := grid(1, 2, 3, 5)
			for stage := range 4 {
				cells = append(cells, cell{Stage: stage, Ranks: 4, Replicas: 3, Threads: 2, Recompute: 1, Threshold: 50}, cell{Stage: stage, Ranks: 6, Replicas: 3, Threads: 1})
			}
			cells = slices.DeleteFunc(cells, func(c cell) bool { return c.Ranks%c.Replicas != 0 })
			againstOracle(t, j, cells)
		})
	}
}

// Random small models with sizes that divide nothing, on random cells, by every optimizer: each equals the oracle.
func TestSameBitsOddModels(t *testing.T) {
	names := slices.Sorted(maps.Keys(optimizers))
	s := seed(t)
	for i := range soak(60) {
		k := prng.New(s).Named("odd").Sub(uint64(i))
		m := &odd{vocab: 2 + k.Intn(0, 150), dim: 1 + k.Intn(1, 20), layers: k.Intn(2, 4), freeze: k.Intn(3, 2) == 1}
		j := oddJob(m, 1+k.Intn(4, 12), optimizers[names[k.Intn(5, len(names))]])
		c := draw(k.Named("cell"), j.GlobalBatch)
		againstOracle(t, j, []cell{c})
		if t.Failed() {
			t.Fatalf("ZEROSHARD_SEED=%d, model %d: %+v, %d leaves, %T", s, i, *m, j.GlobalBatch, j.Optimizer)
		}
	}
}

// A frozen parameter keeps its initial bits at every stage, and all others move.
func TestFrozenParametersStay(t *testing.T) {
	ctx := context.Background()
	for _, c := range grid(1, 3) {
		t.Run(fmt.Sprintf("stage %d, %d ranks", c.Stage, c.Ranks), func(t *testing.T) {
			j := c.config(oddJob(&odd{vocab: 31, dim: 7, layers: 4, freeze: true}, 3, optim.DefaultAdamW()))
			cl, err := zeroshard.Local(ctx, j)
			if err != nil {
				t.Fatal(err)
			}
			defer cl.Close()
			values := func() map[string][]float32 {
				out := map[string][]float32{}
				for _, spec := range j.Model.Flats() {
					for _, p := range spec.Params {
						if p.Len() == 0 {
							continue
						}
						v, err := cl.Full(ctx, p.Name)
						if err != nil {
							t.Fatal(err)
						}
						out[p.Name] = v.Data().([]float32)
					}
				}
				return out
			}
			before := values()
			if _, err := cl.Step(ctx, func(leaf int) (zero.Batch, error) { return batch(j, 1, leaf), nil }, hyper(1)); err != nil {
				t.Fatal(err)
			}
			after := values()
			for _, spec := range j.Model.Flats() {
				for _, p := range spec.Params {
					if p.Len() > 0 && slices.Equal(before[p.Name], after[p.Name]) != p.Frozen {
						t.Errorf("%s (frozen: %t) is the same before and after: %t", p.Name, p.Frozen, !p.Frozen)
					}
				}
			}
		})
	}
}
