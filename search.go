package zeroshard

import (
	"cmp"
	"fmt"
	"slices"

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
	Flags   string  // that turn the setting that was asked about into this one
}

// searchOps bounds a search by the operations of all plans that it compiles: some hundred small plans, or a few of a trillion parameters.
const searchOps = 25_000

// Search lists up to n settings around c that need at most bytes of device memory on each rank, cheapest first: stage, ranks, recompute,
// micro-batch and offload vary, the global batch does not. Candidates are put in order by formula; those whose model state and
// activations alone are too large are dropped; then plans are compiled from the cheapest on until n fit. all says that nothing cheaper was passed over: that the search did not end at
// its bound.
func Search(c Config, bytes int64, n int, r Rates) (found []Choice, all bool, err error) {
	if err := c.Validate(); err != nil {
		return nil, false, err
	}
	c = c.withDefaults()
	type guess struct {
		config  Config
		seconds float64
	}
	layout, err := shard.NewLayout(c.Model.Flats(), c.PersistenceThreshold) // the same for all
	if err != nil {
		return nil, false, fmt.Errorf("%w: %w", zero.ErrOptions, err)
	}
	var guesses []guess
	for _, v := range variants(c) {
		l, s, m, o, err := v.compileArgs(layout)
		if err != nil {
			continue // a combination that the engine refuses
		}
		if cost, wire := zero.Estimate(l, v.Model, s, m, o); cost.Peak() <= bytes {
			guesses = append(guesses, guess{v, r.Seconds(cost, wire)})
		}
	}
	slices.SortStableFunc(guesses, func(a, b guess) int { return cmp.Compare(a.seconds, b.seconds) })
	ops := 0
	all = true
	for _, g := range guesses {
		if len(found) == n {
			break
		}
		if ops > searchOps {
			all = false
			break
		}
		_, s, m, o, err := g.config.compileArgs(layout)
		if err != nil {
			return nil, false, err
		}
		p, err := zero.Compile(layout, c.Model, s, m, o)
		if err != nil {
			continue // a combination that the engine refuses
		}
		ops += len(p.Ops)
		if cost, wire := p.Cost(), p.WireMax(); cost.Peak() <= bytes {
			found = append(found, Choice{Config: g.config, Cost: cost, Wire: wire, Seconds: r.Seconds(cost, wire),
				Bits: g.config.MicroBatch == c.MicroBatch, Flags: flagsFrom(c, g.config)})
		}
	}
	slices.SortStableFunc(found, func(a, b Choice) int { return cmp.Compare(a.Seconds, b.Seconds) })
	return found, all, nil
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
						v.Offload.Optimizer, v.Offload.Param, v.Offload.Ratio, v.DeviceMemory = o.Optimizer, o.Param, 0, 0
						if v.Offload.Dir == "" {
							v.Offload.Dir = "."
						}
						list = append(list, v)
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
