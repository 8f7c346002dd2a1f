package stagetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"testing"

	"zeroshard"
	"zeroshard/device"
	"zeroshard/internal/invariants"
	"zeroshard/memory"
	"zeroshard/models/gpt"
	"zeroshard/offload"
	"zeroshard/optim"
	"zeroshard/zero"
)

var allOnFile = cell{Stage: 3, Ranks: 2, Prefetch: 1, Optim: zero.FileTier, Param: zero.FileTier}

// tierDir is a folder for files of tiers, which must be empty again when the test ends.
func tierDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Cleanup(func() {
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("left in the folder of tiers: %v, %v", left, err)
		}
	})
	return dir
}

// offloaded is a cell's config with files in a folder of the test, and sub-groups small enough that each shard has several.
func offloaded(t *testing.T, c cell, j zeroshard.Config) zeroshard.Config {
	j = c.config(j)
	j.Offload.Dir, j.Offload.SubGroup = tierDir(t), 1000
	return j
}

// A model ten times as large as the device: 24 equal layers, and a limit of a tenth of what stage 0 needs. Sharding alone does not fit; with
// optimizer state on the host, or everything in files, it trains to the bits of stage 0 without a limit.
func TestOffloadModelTenTimesTheDevice(t *testing.T) {
	m, err := gpt.New(gpt.Config{Layers: 24, Heads: 2, Width: 64, Vocab: 64, Positions: 16, Bias: true})
	if err != nil {
		t.Fatal(err)
	}
	j := zeroshard.Config{Model: m, Optimizer: optim.DefaultAdamW(), GlobalBatch: 8, MicroBatch: 1, Seq: 8, Clip: 0.5, Seed: 11}
	want, err := train(plain.config(j))
	if err != nil {
		t.Fatal(err)
	}
	pr, err := zeroshard.Plan(plain.config(j))
	if err != nil {
		t.Fatal(err)
	}
	need := pr.Cost().Peak()
	j.DeviceMemory = need / 10
	for _, c := range []cell{plain, {Stage: 0, Ranks: 8, Threads: 1}, {Stage: 3, Ranks: 8, Threads: 1, Recompute: 1}} {
		var fit *zeroshard.FitError
		if _, err := zeroshard.Local(context.Background(), c.config(j)); !errors.As(err, &fit) || fit.Limit != j.DeviceMemory {
			t.Errorf("%v in %d bytes: %v, want a refusal", c, j.DeviceMemory, err)
		}
	}
	for _, c := range []cell{
		{Stage: 3, Ranks: 8, Threads: 1, Prefetch: 1, Recompute: 1, Optim: zero.HostTier},
		{Stage: 3, Ranks: 1, Threads: 1, Prefetch: 1, Recompute: 1, Optim: zero.FileTier, Param: zero.FileTier},
		{Stage: 3, Ranks: 2, Threads: 1, Prefetch: 2, Recompute: 1, Optim: zero.FileTier, Param: zero.FileTier},
	} {
		t.Run(c.String(), func(t *testing.T) {
			leaks(t)
			j := offloaded(t, c, j)
			j.Offload.SubGroup = 0
			got, err := train(j) // which compares planned memory with used memory
			if err != nil || !got.equal(want) {
				t.Errorf("got  %v (%v)\nwant %v", got, err, want)
			}
			pr, err := zeroshard.Plan(j)
			if err != nil {
				t.Fatal(err)
			}
			cost := pr.Cost()
			t.Logf("stage 0 needs %d bytes, the limit is %d; a rank used %d, rested %d on the host and %d on disk", need, j.DeviceMemory, cost.Peak(),
				cost.Host.Holds, cost.Disk.Holds)
		})
	}
}

// combinations are all that a stage allows of optimizer and parameters on host and in files.
func combinations(ranks ...int) (cells []cell) {
	tiers := []string{"", zero.HostTier, zero.FileTier}
	for stage := 1; stage <= 3; stage++ {
		for _, optim := range tiers {
			for _, param := range tiers {
				if optim+param == "" || param != "" && stage < 3 {
					continue
				}
				for i, n := range ranks {
					cells = append(cells, cell{Stage: stage, Ranks: n, Replicas: 1, Optim: optim, Param: param, Prefetch: i % 3})
				}
			}
		}
	}
	return cells
}

// hybrids are meshes of replicas, kept parameters, ratios and recomputation with offload, for 8 leaves.
var hybrids = []cell{
	{Stage: 1, Ranks: 4, Replicas: 2, Optim: zero.HostTier, Prefetch: 1},
	{Stage: 2, Ranks: 8, Replicas: 4, Optim: zero.FileTier},
	{Stage: 3, Ranks: 4, Replicas: 2, Optim: zero.FileTier, Param: zero.HostTier, Prefetch: 2},
	{Stage: 3, Ranks: 8, Replicas: 2, Optim: zero.HostTier, Param: zero.FileTier, Recompute: 1, Threshold: 50},
	{Stage: 3, Ranks: 4, Replicas: 4, Optim: zero.FileTier, Param: zero.FileTier},
	{Stage: 3, Ranks: 2, Optim: zero.HostTier, Ratio: 0.1, Prefetch: 1},
	{Stage: 3, Ranks: 1, Optim: zero.FileTier, Ratio: 0.5},
	{Stage: 3, Ranks: 3, Optim: zero.HostTier, Param: zero.FileTier, Ratio: 0.7, Threshold: 50},
	{Stage: 3, Ranks: 4, Replicas: 2, Optim: zero.FileTier, Ratio: 0.9, KeepLast: true},
}

// Several flats, sizes that divide nothing, parameters without elements, frozen ones, replicas, kept parameters, a share only: on host and in
// files each leaves the oracle's bits.
func TestOffloadOddSizes(t *testing.T) {
	for name, o := range optimizers {
		t.Run(name, func(t *testing.T) {
			cells := hybrids
			if name == "adamw" && !testing.Short() {
				cells = append(combinations(1, 3), cells...)
			}
			againstOracle(t, oddJob(&odd{vocab: 31, dim: 7, layers: 4, freeze: true}, 8, o), cells)
		})
	}
}

// A NaN on one rank: all ranks skip the step alike, what rests in a tier is as before, and the next step is that of a run without it.
func TestOffloadNaN(t *testing.T) {
	for _, c := range []struct {
		leaves int
		cell
	}{
		{3, cell{Stage: 1, Ranks: 2, Optim: zero.HostTier}},
		{2, cell{Stage: 3, Ranks: 2, Prefetch: 1, Optim: zero.HostTier, Param: zero.FileTier}},
		{4, cell{Stage: 3, Ranks: 4, Replicas: 2, Optim: zero.HostTier, Param: zero.HostTier}},
		{3, cell{Stage: 3, Ranks: 1, Optim: zero.HostTier, Ratio: 0.5}},
	} {
		t.Run(c.String(), func(t *testing.T) {
			leaks(t)
			nanAtEveryOp(t, offloaded(t, c.cell, job(t, "micro", c.leaves, 1, 4, 0)), c.Ranks-1)
		})
	}
}

// counted counts what passes a tier, in bytes.
type counted struct {
	offload.Tier
	fetched, evicted atomic.Int64
}

func (c *counted) Get(ctx context.Context, s device.Stream, k offload.Key, off int64, dst device.Buffer) error {
	c.fetched.Add(dst.Bytes())
	return c.Tier.Get(ctx, s, k, off, dst)
}

func (c *counted) Put(ctx context.Context, s device.Stream, k offload.Key, off int64, src device.Buffer) error {
	c.evicted.Add(src.Bytes())
	return c.Tier.Put(ctx, s, k, off, src)
}

// take is what passed since the last take, and what the tier says it holds.
func (c *counted) take() zero.Tier {
	if c == nil {
		return zero.Tier{}
	}
	return zero.Tier{Holds: c.Used(), Fetched: c.fetched.Swap(0), Evicted: c.evicted.Swap(0)}
}

// What tiers hold and what moves is what the plan says, to the byte: in a step, and in an evaluation, which writes nothing.
func TestOffloadBytesAreCounted(t *testing.T) {
	cells := hybrids
	if !testing.Short() {
		cells = append(combinations(1, 3), cells...)
	}
	for _, c := range cells {
		t.Run(c.String(), func(t *testing.T) {
			j := offloaded(t, c, job(t, "micro", 8, 1, 8, 0))
			tiers := make([]map[string]*counted, c.Ranks)
			for r := range tiers {
				tiers[r] = map[string]*counted{}
			}
			ctx := context.Background()
			cl, err := zeroshard.Local(ctx, j, zeroshard.WithTier(func(rank int, name string, t offload.Tier) offload.Tier {
				tiers[rank][name] = &counted{Tier: t}
				return tiers[rank][name]
			}))
			if err != nil {
				t.Fatal(err)
			}
			defer cl.Close()
			check := func(what string, cost zero.Cost) {
				t.Helper()
				for r, by := range tiers {
					host, disk := by[zero.HostTier].take(), by[zero.FileTier].take()
					if host != cost.Host || disk != cost.Disk {
						t.Errorf("%s: rank %d has %+v on the host and %+v on disk, planned are %+v and %+v", what, r, host, disk, cost.Host, cost.Disk)
					}
				}
			}
			for _, by := range tiers { // initial values
				by[zero.HostTier].take()
				by[zero.FileTier].take()
			}
			leaf := func(leaf int) (zero.Batch, error) { return batch(j, 1, leaf), nil }
			for step := 1; step <= 2; step++ {
				if _, err := cl.Step(ctx, leaf, hyper(step)); err != nil {
					t.Fatal(err)
				}
				check(fmt.Sprint("step ", step), cl.Program().Train.Cost())
			}
			if _, err := cl.Eval(ctx, leaf); err != nil {
				t.Fatal(err)
			}
			eval, rest := cl.Program().Eval.Cost(), cl.Program().Cost()
			if eval.Host.Evicted+eval.Disk.Evicted != 0 {
				t.Errorf("an evaluation writes: %+v, %+v", eval.Host, eval.Disk)
			}
			eval.Host.Holds, eval.Disk.Holds = rest.Host.Holds, rest.Disk.Holds
			check("evaluation", eval)
			for _, x := range cl.Tiers() {
				if x.Used != x.Planned || x.Used == 0 && c.Ranks < 8 {
					t.Errorf("%+v", x)
				}
			}
		})
	}
}

// What streams through the device lies in an arena that is as tight as without offload: every grain of it is written in a step.
func TestOffloadArenasAreTight(t *testing.T) {
	for _, c := range []cell{
		{Stage: 2, Ranks: 2, Prefetch: 1, Optim: zero.HostTier}, {Stage: 3, Ranks: 2, Prefetch: 1, Optim: zero.HostTier, Param: zero.HostTier},
		{Stage: 3, Ranks: 1, Optim: zero.FileTier, Param: zero.FileTier}, {Stage: 3, Ranks: 4, Replicas: 2, Optim: zero.HostTier, Ratio: 0.5},
	} {
		t.Run(c.String(), func(t *testing.T) {
			ledgers := make([]*ledger, c.Ranks)
			w := mustCrew(t, offloaded(t, c, job(t, "micro", 8, 1, 16, 0)), seams{device: func(r int, d device.Device) device.Device {
				ledgers[r] = &ledger{Device: d}
				return ledgers[r]
			}})
			for _, l := range ledgers {
				copy(bytesOf(l.mems[1]), bytes.Repeat([]byte{0xa5}, int(l.mems[1].Size())))
			}
			w.mustStep(t, 1)
			for r, l := range ledgers {
				transient(t, w, r, bytesOf(l.mems[1]))
				if p := w.engines[r].Program(); l.total != p.Cost().Peak() {
					t.Errorf("rank %d: the device gave %d bytes, %d were planned", r, l.total, p.Cost().Peak())
				}
			}
		})
	}
}

// A fetch or evict allocates nothing, on host or in files.
func TestOffloadAllocatesNoGarbage(t *testing.T) {
	if raced || invariants.Enabled {
		t.Skip("the race detector and poisoned buffers allocate")
	}
	for _, tier := range []string{zero.HostTier, zero.FileTier} {
		c := cell{Stage: 3, Ranks: 2, Prefetch: 1, Optim: tier, Param: tier}
		config := func(layers int) zeroshard.Config {
			j := offloaded(t, c, deep(t, layers))
			j.GlobalBatch, j.Offload.SubGroup = 2, 0
			return j
		}
		few, _, fewOps := garbage(t, config(2))
		many, _, manyOps := garbage(t, config(8))
		if perOp := (many - few) / float64((manyOps-fewOps)*c.Ranks); perOp > 0.01 {
			t.Errorf("%s: an op allocates %.3f objects: %v in a step of %d ops, %v in one of %d", tier, perOp, few, fewOps, many, manyOps)
		}
	}
}

// Memory that is refused while ranks are made, past a plan that fits, names the rank, the line that needs most, who holds the rest and
// what is missing.
func TestOffloadLimitReachedAtRunTime(t *testing.T) {
	j := offloaded(t, cell{Stage: 3, Ranks: 2, Optim: zero.HostTier}, job(t, "micro", 4, 1, 8, 0))
	pr, err := zeroshard.Plan(j)
	if err != nil {
		t.Fatal(err)
	}
	cost := pr.Cost()
	limit := cost.Resident + cost.Transient - 1
	_, err = zeroshard.Local(context.Background(), j, zeroshard.WithObservers(func(int) []memory.Observer {
		return []memory.Observer{memory.NewLimit(limit)}
	}))
	var refused *memory.LimitError
	if !errors.As(err, &refused) || refused.Want != (memory.Block{Name: "transient", Bytes: cost.Transient}) || refused.Shortfall() != 1 ||
		len(refused.Held) != 1 || refused.Held[0] != (memory.Block{Name: "resident", Bytes: cost.Resident}) {
		t.Fatalf("%v, want the transient arena refused for one byte", err)
	}
	says(t, err, "rank ", "most is live at plan line "+pr.Train.Line(cost.PeakOp), "wanted: transient", "held: resident", "short", "1 bytes")
}
