package zeroshard

import (
	"fmt"

	"zeroshard/offload"
	"zeroshard/offload/file"
	"zeroshard/offload/host"
	"zeroshard/zero"
)

// Offload says what rests outside device memory, and where: "" (the device), "host" or "file".
type Offload struct {
	// Optimizer is where optimizer state rests, and with it gradients where the stage shards them; stages 1 to 3. Bits: unchanged.
	Optimizer string
	// Param is where parameters rest; stage 3. Bits: unchanged.
	Param string
	// Dir is the folder of tier "file". Bits: unchanged.
	Dir string
	// SubGroup is the elements that the optimizer updates at a time; 0 is zero.Options' default. Bits: unchanged.
	SubGroup int
	// Ratio is the share of the elements whose optimizer state and gradients leave the device, above 0 and up to 1; 0 is 1. Less than 1 is for
	// stage 3. Bits: unchanged.
	Ratio float64
}

// strategy is a stage's row with what o says.
func (o Offload) strategy(s zero.Strategy) zero.Strategy {
	return s.Offload(o.Optimizer, o.Param).Partly(o.Ratio)
}

func (o Offload) uses(tier string) bool { return o.Optimizer == tier || o.Param == tier }

// validate reports what a strategy alone does not know.
func (o Offload) validate(stage int) error {
	strategy, err := zero.Stage(stage)
	if err != nil {
		return nil // reported as such
	}
	if err := o.strategy(strategy).Validate(); err != nil {
		return err
	}
	if o.uses(zero.FileTier) && o.Dir == "" {
		return fmt.Errorf("%w: offload to files needs a folder (--offload-path DIR)", zero.ErrOptions)
	}
	return nil
}

// tiers makes the tiers of a rank.
func (o Offload) tiers(rank int) map[string]offload.Tier {
	t := map[string]offload.Tier{}
	if o.uses(zero.HostTier) {
		t[zero.HostTier] = host.New(host.Options{Rank: rank})
	}
	if o.uses(zero.FileTier) {
		t[zero.FileTier] = file.New(file.Options{Dir: o.Dir, Rank: rank})
	}
	return t
}

// RankTier is what a rank rests outside its device memory, in one tier.
type RankTier struct {
	Rank          int
	Name          string // "host", "file"
	Planned, Used int64  // bytes: as the plan says, and as the tier reports
	Files         *Files // of tier "file", as far as the tier says
}

// Files says how a rank's tier of files works.
type Files struct {
	Path      string   // their folder
	Direct    bool     // I/O goes around the page cache
	Recovered []string // folders of runs that were killed, removed at the start
}

// Tiers lists what rests outside device memory, by rank.
func (c *Cluster) Tiers() (list []RankTier) {
	cost := c.program.Cost()
	for r, rk := range c.ranks {
		for _, at := range []struct {
			name    string
			planned zero.Tier
		}{{zero.HostTier, cost.Host}, {zero.FileTier, cost.Disk}} {
			t, ok := rk.tiers[at.name]
			if !ok {
				continue
			}
			x := RankTier{Rank: r, Name: at.name, Planned: at.planned.Holds, Used: t.Used()}
			if f, ok := t.(*file.Tier); ok {
				x.Files = &Files{Path: f.Path(), Direct: f.Direct(), Recovered: f.Recovered()}
			}
			list = append(list, x)
		}
	}
	return list
}
