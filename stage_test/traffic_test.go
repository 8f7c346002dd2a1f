package stagetest

import (
	"context"
	"fmt"
	"math"
	"testing"

	"zeroshard"
	"zeroshard/internal/exact"
	"zeroshard/zero"
)

// sent trains one step and returns what each rank has sent in it.
func sent(t *testing.T, j zeroshard.Config) (*zero.Plan, []zero.Traffic) {
	t.Helper()
	ctx := context.Background()
	cl, err := zeroshard.Local(ctx, j)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	if _, err := cl.Step(ctx, func(leaf int) (zero.Batch, error) { return batch(j, 1, leaf), nil }, hyper(1)); err != nil {
		t.Fatal(err)
	}
	return cl.Program().Train, cl.Wire()
}

// volumes are the elements that a rank sends by ZeRO's account (arXiv 1910.02054, section 7): Ψ is padded, a is the micro-batches of a
// rank, windows how often it sends gradients.
func volumes(stage, psi, n, a, windows int) (gathered, reduced int) {
	part := psi / n * (n - 1) // Ψ(N−1)/N
	switch stage {
	case 0, 1:
		return part, windows * part // gradients or updated parameters once; a reduce-scatter for each window
	case 2:
		return part, a * part
	}
	return 2 * a * part, a * part // parameters for forward and for backward, gradients
}

// Counted traffic is the formula in padded elements, exactly, where every rank has a micro-batches; and Cost said so before the run.
func TestTrafficIsTheFormula(t *testing.T) {
	for stage := range 4 {
		for _, n := range []int{2, 3, 4, 5, 8} {
			for a := 1; a <= 4; a++ {
				for _, window := range []int{0, 1} {
					if window == 1 && (stage > 1 || a == 1) || testing.Short() && (n > 3 || a > 3) {
						continue
					}
					t.Run(fmt.Sprintf("stage %d, %d ranks, %d micro-batches, window %d", stage, n, a, window), func(t *testing.T) {
						j := cell{Stage: stage, Ranks: n, Window: window}.config(job(t, "micro", a*n, 1, 4, 0))
						windows := a
						if window == 0 {
							windows = a / (a & -a) // the largest power of two that divides a
						}
						gathered, reduced := volumes(stage, sum(sizesOf(j), full), n, a, windows)
						scalars := (n - 1) * 8 * (2*a + exact.Words)
						want := zero.Traffic{AllGather: 4 * int64(gathered), ReduceScatter: 4 * int64(reduced), Scalars: int64(scalars)}
						plan, ranks := sent(t, j)
						for r, got := range ranks {
							if got != want || plan.Wire(r) != want {
								t.Errorf("rank %d sent %+v, planned %+v, the formula gives %+v", r, got, plan.Wire(r), want)
							}
						}
						if plan.WireMax() != want {
							t.Errorf("WireMax is %+v, want %+v", plan.WireMax(), want)
						}
					})
				}
			}
		}
	}
}

// A hybrid mesh: inside a replica as on a world of its own, and the shards once across replicas, there and back.
func TestTrafficOfHybridMeshes(t *testing.T) {
	for _, c := range []cell{{Stage: 3, Ranks: 4, Replicas: 2}, {Stage: 3, Ranks: 8, Replicas: 2}, {Stage: 2, Ranks: 8, Replicas: 4}, {Stage: 1, Ranks: 4, Replicas: 2}} {
		t.Run(c.String(), func(t *testing.T) {
			j := c.config(job(t, "micro", 8, 1, 4, 0))
			n := c.Ranks / c.Replicas
			a := 8 / c.Ranks
			psi := sum(sizesOf(j), full)
			gathered, reduced := volumes(c.Stage, psi, n, a, 1)
			across := psi / n / c.Replicas * (c.Replicas - 1)
			want := zero.Traffic{AllGather: 4 * int64(gathered+across), ReduceScatter: 4 * int64(reduced+across),
				Scalars: int64(c.Ranks-1) * 8 * int64(2*a+exact.Words)}
			plan, ranks := sent(t, j)
			for r, got := range ranks {
				if got != want || plan.Wire(r) != want {
					t.Errorf("rank %d sent %+v, planned %+v, the formula gives %+v", r, got, plan.Wire(r), want)
				}
			}
		})
	}
}

// Where ranks have different numbers of micro-batches, each sends what the plan says of it, and an idle one no gradients.
func TestTrafficOfIdleRanks(t *testing.T) {
	for stage := range 4 {
		j := cell{Stage: stage, Ranks: 3, Window: 1}.config(job(t, "micro", 7, 1, 4, 0)) // windows 0 1 2 | 3 4 5 | 6
		psi := sum(sizesOf(j), full)
		plan, ranks := sent(t, j)
		for r, got := range ranks {
			leaves := 2
			if r == 0 {
				leaves = 3
			}
			if want := 4 * int64(leaves*psi/3*2); got != plan.Wire(r) || got.ReduceScatter != want {
				t.Errorf("stage %d: rank %d with %d micro-batches sent %+v, planned %+v, want %d bytes of gradients", stage, r, leaves, got, plan.Wire(r), want)
			}
			if got.AllGather != ranks[0].AllGather {
				t.Errorf("stage %d: rank %d gathers %d bytes, rank 0 %d", stage, r, got.AllGather, ranks[0].AllGather)
			}
		}
	}
}

// Persistent parameters are never gathered for use: at stage 3 they are sent as at stage 2.
func TestTrafficOfPersistentParameters(t *testing.T) {
	j := cell{Stage: 3, Ranks: 4, Threshold: 200}.config(job(t, "micro", 8, 1, 4, 0))
	var gathered, reduced int
	for _, f := range sizesOf(j) {
		stage := 3
		if f.kept {
			stage = 2
		}
		g, r := volumes(stage, f.full, 4, 2, 2)
		gathered, reduced = gathered+g, reduced+r
	}
	_, ranks := sent(t, j)
	for r, got := range ranks {
		if got.AllGather != 4*int64(gathered) || got.ReduceScatter != 4*int64(reduced) {
			t.Errorf("rank %d sent %+v, the formula gives %d and %d elements", r, got, gathered, reduced)
		}
	}
}

// For gpt2 and larger, with one micro-batch a rank, the plan is within 1 % of the paper's 2Ψ and 3Ψ (times (N−1)/N): padding is small, and
// so are scalars.
func TestTrafficOfThePaper(t *testing.T) {
	presets := []string{"gpt2", "gpt2-xl", "7.5b", "1t"}
	if testing.Short() {
		presets = presets[:2]
	}
	for _, preset := range presets {
		for stage, factor := range []float64{2, 2, 2, 3} {
			for _, n := range []int{2, 3, 64} {
				for _, precision := range []zero.Precision{zero.FP32, zero.BF16} {
					j := planJob(t, preset, n, stage)
					j.Precision = precision
					pr, err := zeroshard.Plan(j)
					if err != nil {
						t.Fatal(err)
					}
					psi := float64(sum(sizesOf(j), numel))
					want := factor * psi * float64(n-1) / float64(n)
					got := float64(pr.Train.WireMax().Sum()) / float64(precision.Compute.Size())
					if far := math.Abs(got-want) / want; far > 0.01 {
						t.Errorf("%s, stage %d, %d ranks, %v: %.0f elements, the paper has %.0f: %.2f %% off", preset, stage, n, precision, got, want, 100*far)
					}
				}
			}
		}
	}
}
