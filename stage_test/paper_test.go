package stagetest

import (
	"context"
	"fmt"
	"math"
	"testing"

	"zeroshard"
	"zeroshard/collectives"
	"zeroshard/device"
	"zeroshard/device/null"
	"zeroshard/kernels"
	"zeroshard/memory"
	"zeroshard/models/gpt"
	"zeroshard/optim"
	"zeroshard/shard"
	"zeroshard/zero"
)

// planJob is a preset with one sequence of one leaf for each rank, to plan.
func planJob(t testing.TB, preset string, ranks, stage int) zeroshard.Config {
	t.Helper()
	cfg, err := gpt.Preset(preset)
	if err != nil {
		t.Fatal(err)
	}
	m, err := gpt.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return zeroshard.Config{Model: m, Ranks: ranks, Stage: stage, GlobalBatch: ranks, MicroBatch: 1, Seq: cfg.Positions}
}

// The ZeRO paper's table of model state per device in GB (arXiv 1910.02054, table 1): P_os, P_os+g and P_os+g+p, with a stage and
// mixed precision. The plan is within 3 % of it, and exactly the formula in the preset's own Ψ plus padding.
func TestZeROPaperTable(t *testing.T) {
	worlds := []int{1, 4, 16, 64, 256, 1024}
	for _, c := range []struct {
		preset string
		gb     [3][6]float64 // by stage 1, 2, 3 and world
	}{
		{"7.5b", [3][6]float64{{120, 52.5, 35.6, 31.4, 30.4, 30.1}, {120, 41.3, 21.6, 16.6, 15.4, 15.1}, {120, 30, 7.5, 1.88, 0.47, 0.12}}},
		{"128b", [3][6]float64{{2048, 896, 608, 536, 518, 513}, {2048, 704, 368, 284, 263, 258}, {2048, 512, 128, 32, 8, 2}}},
		{"1t", [3][6]float64{{16000, 7000, 4750, 4188, 4047, 4012}, {16000, 5500, 2875, 2219, 2055, 2014}, {16000, 4000, 1000, 250, 62.5, 15.6}}},
	} {
		t.Run(c.preset, func(t *testing.T) {
			for i, row := range c.gb {
				stage := i + 1
				line := fmt.Sprintf("stage %d:", stage)
				for k, n := range worlds {
					j := planJob(t, c.preset, n, stage)
					j.Precision = zero.BF16
					pr, err := zeroshard.Plan(j)
					if err != nil {
						t.Fatal(err)
					}
					got := pr.Cost().ModelState
					if far := math.Abs(float64(got)/1e9-row[k]) / row[k]; far > 0.03 {
						t.Errorf("stage %d on %d ranks: %.3f GB, the paper has %v", stage, n, float64(got)/1e9, row[k])
					}
					if want := stateBytes(sizesOf(j), stage, zero.BF16); got != want {
						t.Errorf("stage %d on %d ranks: %d bytes, the formula with padding gives %d", stage, n, got, want)
					}
					checkPadding(t, j, stage, got)
					line += fmt.Sprintf("  %8.2f (%v)", float64(got)/1e9, row[k])
				}
				t.Log(line + " GB")
			}
		})
	}
}

// checkPadding says what the plan holds above the formula in Ψ alone: less than a grain for each parameter, and for each flat less than
// a grain for each rank, at most 16 bytes an element.
func checkPadding(t *testing.T, j zeroshard.Config, stage int, state int64) {
	t.Helper()
	flats, params := sizesOf(j), 0
	for _, spec := range j.Model.Flats() {
		params += len(spec.Params)
	}
	psi, n := float64(sum(flats, numel)), float64(j.Ranks)
	var formula float64
	switch stage {
	case 1:
		formula = 4*psi + 12*psi/n
	case 2:
		formula = 2*psi + 14*psi/n
	case 3:
		formula = 16 * psi / n
	}
	padding := float64(state) - formula
	most := 128 * 16 * (float64(params) + n*float64(len(flats)))
	if padding < -0.5 || padding > most {
		t.Errorf("stage %d on %d ranks: %.0f bytes of padding, at most %.0f are explained", stage, j.Ranks, padding, most)
	}
}

// lonely is one rank's end of a group whose other ranks do as this one does: what one gathers are its own pieces. It lets a single
// engine of a large world run on a device without memory.
type lonely struct{ rank, size int }

func (g *lonely) Rank() int { return g.rank }
func (g *lonely) Size() int { return g.size }

func (g *lonely) AllGather(_ context.Context, _ device.Stream, dst, src device.Buffer) error {
	if _, err := collectives.GatherCall(g.rank, g.size, dst, src); err != nil {
		return err
	}
	for r := range g.size {
		copy(dst.Raw()[r*int(src.Bytes()):], src.Raw())
	}
	return nil
}

func (g *lonely) ReduceScatter(_ context.Context, _ device.Stream, r collectives.Reduction) error {
	_, err := collectives.ReduceCall(g.rank, g.size, r)
	return err
}

func (g *lonely) Workspace(collectives.Verb, int64) int64 { return 0 }
func (g *lonely) Abort(error)                             {}
func (g *lonely) Close() error                            { return nil }

// The plan of a model with 10¹² parameters runs on the null device: the engine reserves what the plan says, and hands over every op.
func TestTrillionParametersOnTheNullDevice(t *testing.T) {
	for _, c := range []struct{ ranks, rank, stage int }{{1024, 0, 3}, {1024, 1023, 3}, {64, 5, 1}, {1, 0, 0}} {
		t.Run(fmt.Sprintf("rank %d of %d, stage %d", c.rank, c.ranks, c.stage), func(t *testing.T) {
			j := planJob(t, "1t", c.ranks, c.stage)
			pr, err := zeroshard.Plan(j)
			if err != nil {
				t.Fatal(err)
			}
			dev := null.New()
			defer dev.Close()
			ctx := context.Background()
			tracker := memory.NewTracker()
			groups := map[shard.Axis]collectives.Group{}
			for _, axis := range []shard.Axis{shard.World, shard.Shards, shard.Replicate} {
				groups[axis] = &lonely{pr.Train.Mesh.Coord(c.rank, axis), pr.Train.Mesh.Size(axis)}
			}
			k := struct{ kernels.Backend }{reference()} // without its UseScratch: there is no memory to use
			e, err := zero.New(ctx, zero.Config{Rank: c.rank, Program: pr, Model: j.Model, Optimizer: optim.DefaultAdamW(), Device: dev,
				Arena: memory.NewArena(dev, tracker), Net: k, Vector: k, Groups: groups})
			if err != nil {
				t.Fatal(err)
			}
			rows := j.MicroBatch * j.Seq
			st, err := e.Step(ctx, []zero.Batch{{Tokens: make([]int32, rows), Targets: make([]int32, rows)}}, hyper(1))
			if err != nil {
				t.Fatal(err)
			}
			if st.Tokens != 0 {
				t.Errorf("a device that computes nothing has trained on %d tokens", st.Tokens)
			}
			cost := pr.Cost()
			if dev.Used() != cost.Peak() || dev.Peak() != cost.Peak() {
				t.Errorf("%d bytes used, %d at the peak, %d planned", dev.Used(), dev.Peak(), cost.Peak())
			}
			if _, live := tracker.Peak(); live.Sum()+cost.Hole != cost.Peak() {
				t.Errorf("%d bytes live and %d of hole are not the %d planned", live.Sum(), cost.Hole, cost.Peak())
			}
			if want := stateBytes(sizesOf(j), c.stage, zero.FP32); cost.ModelState != want {
				t.Errorf("model state of %d bytes, the formula with padding gives %d", cost.ModelState, want)
			}
			tasks, ops := dev.Tasks(), 0
			for i := range pr.Train.Ops {
				if pr.Train.Ops[i].Lane == zero.Host {
					continue
				}
				if ops++; tasks[pr.Train.Line(i)] != 1 {
					t.Fatalf("%s was given %d times", pr.Train.Line(i), tasks[pr.Train.Line(i)])
				}
			}
			t.Logf("%d ops, %s for each rank, %s of it model state", ops, memory.FormatBytes(cost.Peak()), memory.FormatBytes(cost.ModelState))
			if err := e.Close(); err != nil || dev.Used() != 0 {
				t.Errorf("Close: %v, %d bytes left", err, dev.Used())
			}
		})
	}
}
