package zeroshard

import (
	"cmp"
	"fmt"
	"slices"

	"zeroshard/models"
	"zeroshard/shard"
	"zeroshard/zero"
)

// Rates are what a rank does in a second. They only order settings by cost; DefaultRates are round figures for a CPU rank.
type Rates struct {
	Flops            float64 // operations
	Wire, Host, Disk float64 // bytes sent, and moved from or to a tier
}

// DefaultRates: 100 GFLOP/s, 10 GB/s between ranks, 5 GB/s to host memory, 1.5 GB/s to files.
var DefaultRates = Rates{Flops: 100e9, Wire: 10e9, Host: 5e9, Disk: 1.5e9}

// Seconds is the predicted time of a step in which nothing overlaps: an upper bound that is good for comparing.
func (r Rates) Seconds(c zero.Cost, wire zero.Traffic) float64 {
	return float64(c.Flops)/r.Flops + float64(wire.Sum())/r.Wire +
		float64(c.Host.Fetched+c.Host.Evicted)/r.Host + float64(c.Disk.Fetched+c.Disk.Evicted)/r.Disk
}

// Choice is a setting that fits, and what it costs.
type Choice struct {
	Config  Config
	Cost    zero.Cost // of a training step
	Wire    zero.Traffic
	Seconds float64 // predicted
	Bits    bool    // the result has the bits of the setting that was asked about
}

// Flags is the setting as flags.
func (c Choice) Flags() string {
	s := fmt.Sprintf("--stage %d --ranks %d", c.Config.Stage, c.Config.Ranks)
	if c.Config.Recompute == 1 {
		s += " --recompute all"
	}
	if o := c.Config.Offload; o.Optimizer != "" {
		s += " --offload-optimizer " + o.Optimizer
	}
	if c.Config.Offload.Param != "" {
		s += " --offload-param " + c.Config.Offload.Param
	}
	if c.Config.Offload.uses(zero.FileTier) {
		s += " --offload-path DIR"
	}
	return s + fmt.Sprintf(" --micro-batch %d", c.Config.MicroBatch)
}

// maxCompiles bounds a search: a plan of a trillion parameters takes some ten milliseconds.
const maxCompiles = 8

// Search lists up to n settings around c that need at most bytes of device memory on each rank, cheapest first: stage, ranks, recompute,
// micro-batch and offload vary, the global batch does not. Candidates are put in order by formula; those whose model state and
// activations alone are too large are dropped; then plans are compiled from the cheapest on until n fit.
func Search(c Config, bytes int64, n int, r Rates) ([]Choice, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c = c.withDefaults()
	layout, err := shard.NewLayout(c.Model.Flats(), c.PersistenceThreshold)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", zero.ErrOptions, err)
	}
	e := estimator{layout: layout, states: len(c.Optimizer.States()), rates: r, units: c.Model.Units()}
	var guesses []guess
	for _, v := range variants(c) {
		if g := e.guess(v); g.least <= bytes {
			guesses = append(guesses, g)
		}
	}
	slices.SortStableFunc(guesses, func(a, b guess) int { return cmp.Compare(a.seconds, b.seconds) })
	var out []Choice
	for tries, g := range guesses {
		if tries == maxCompiles && len(out) > 0 || tries == 4*maxCompiles || len(out) == n {
			break
		}
		p, err := planTrain(g.config)
		if err != nil {
			continue // a combination that the engine refuses
		}
		if cost := p.Cost(); cost.Peak() <= bytes {
			out = append(out, Choice{Config: g.config, Cost: cost, Wire: p.WireMax(), Bits: g.config.MicroBatch == c.MicroBatch})
		}
	}
	for i := range out {
		out[i].Seconds = r.Seconds(out[i].Cost, out[i].Wire)
	}
	slices.SortStableFunc(out, func(a, b Choice) int { return cmp.Compare(a.Seconds, b.Seconds) })
	return out, nil
}

// variants lists the settings that a search looks at.
func variants(c Config) (list []Config) {
	tiers := []Offload{{}, {Optimizer: zero.HostTier}, {Optimizer: zero.HostTier, Param: zero.HostTier}, {Optimizer: zero.FileTier}, {Optimizer: zero.FileTier, Param: zero.FileTier}}
	for _, micro := range halved(c.MicroBatch) {
		for _, ranks := range doubled(c.Ranks, c.GlobalBatch/micro) {
			for stage := range zero.Stages {
				for _, recompute := range distinct(c.Recompute, 1) {
					for _, o := range tiers {
						v := c
						v.MicroBatch, v.Ranks, v.Stage, v.Recompute, v.Window = micro, ranks, stage, recompute, 0
						v.Offload.Optimizer, v.Offload.Param, v.DeviceMemory = o.Optimizer, o.Param, 0
						if v.Offload.Dir == "" {
							v.Offload.Dir = "."
						}
						if v.Validate() == nil {
							list = append(list, v)
						}
					}
				}
			}
		}
	}
	return list
}

// halved is n, n/2, n/4 … as far as it divides.
func halved(n int) []int {
	list := []int{n}
	for n%2 == 0 {
		n /= 2
		list = append(list, n)
	}
	return list
}

// estimator knows the formulas: padded model state (exact), FLOPs and bytes moved (about).
type estimator struct {
	layout *shard.Layout
	states int
	rates  Rates
	units  []models.Unit
	sums   map[models.Shape]sums
}

type guess struct {
	config  Config
	least   int64 // bytes that the plan needs at least
	seconds float64
}

func (e *estimator) guess(c Config) guess {
	mesh, err := shard.NewMesh(c.Replicas, c.Ranks/c.Replicas)
	if err != nil {
		return guess{config: c}
	}
	var full, part float64
	for f := range e.layout.Flats {
		full += float64(e.layout.FullLen(f, mesh))
		part += float64(e.layout.ShardLen(f, mesh))
	}
	bytes := float64(c.Precision.Compute.Size())
	row, err := zero.Stage(c.Stage)
	if err != nil {
		return guess{config: c}
	}
	row = row.Offload(c.Offload.Optimizer, c.Offload.Param)
	rest := func(r zero.Rest, n float64) float64 {
		switch {
		case r.Tier != "":
			return 0
		case r.Over != shard.None:
			return n * part
		}
		return n * full
	}
	optim := float64(4 * e.states)
	if c.Precision.Compute != c.Precision.Master {
		optim += 4
	}
	least := rest(row.Param, bytes) + rest(row.Grad, bytes) + rest(row.Optim, optim) + bytes*float64(e.held(c))
	return guess{config: c, least: int64(least), seconds: e.seconds(c, row, [3]float64{full, part, bytes})}
}

// seconds is the time of a step by formula: A leaves a rank, 3Ψ, (A+1)Ψ or 2Ψ of traffic, tiers read and written.
func (e *estimator) seconds(c Config, row zero.Strategy, size [3]float64) float64 {
	full, part, bytes := size[0], size[1], size[2]
	shards := float64(c.Ranks / c.Replicas)
	leaves := float64((c.GlobalBatch/c.MicroBatch + c.Ranks - 1) / c.Ranks)
	sends := 2.0
	switch {
	case row.Param.Over != shard.None:
		sends = 3 * leaves
	case row.Grad.Over != shard.None:
		sends = leaves + 1
	}
	t := e.sum(models.Shape{Batch: c.MicroBatch, Seq: c.Seq})
	work := 3 * float64(t.flops)
	if c.Recompute > 0 {
		work += float64(t.again) / float64(c.Recompute)
	}
	moved := map[string]float64{}
	moved[row.Optim.Tier] += 2 * part * float64(4*e.states)
	moved[row.Grad.Tier] += (2*leaves + 1) * part * bytes
	moved[row.Param.Tier] += (2*leaves + 2) * part * bytes
	return leaves*work/e.rates.Flops + sends*full*bytes*(shards-1)/shards/e.rates.Wire +
		moved[zero.HostTier]/e.rates.Host + moved[zero.FileTier]/e.rates.Disk
}

// sums are over the units of a model.
type sums struct {
	flops, again int64 // forward: of all units, and of those that can be recomputed
	outs, saved  int64 // elements that live when the loss is computed
}

func (e *estimator) sum(s models.Shape) sums {
	if e.sums == nil {
		e.sums = map[models.Shape]sums{}
	}
	t, ok := e.sums[s]
	if !ok {
		for _, u := range e.units {
			z := u.Sizes(s, models.Train)
			t.flops += z.Flops
			t.outs += int64(z.Out)
			t.saved += int64(z.Saved)
			if z.Saved > 0 {
				t.again += z.Flops
			}
		}
		last := e.units[len(e.units)-1].Sizes(s, models.Train)
		t.outs -= int64(last.Out)
		t.saved -= int64(last.Saved)
		e.sums[s] = t
	}
	return t
}

// held is the elements of activations that live when the loss is computed: a plan needs them at least.
func (e *estimator) held(c Config) int64 {
	t := e.sum(models.Shape{Batch: c.MicroBatch, Seq: c.Seq})
	if c.Recompute > 0 {
		return t.outs
	}
	return t.outs + t.saved
}
