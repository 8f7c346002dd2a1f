package zeroshard

import (
	"fmt"
	"strings"

	"zeroshard/memory"
	"zeroshard/zero"
)

// FitError says that a run would not fit into the device, who needs what, and which settings near it fit.
type FitError struct {
	Limit, Peak int64
	Stages      []Candidate // the same run at every stage
	Nearest     []Candidate // settings with the same result that fit, least change first: four at most
}

// Candidate is a setting and what it needs.
type Candidate struct {
	Setting string // as flags of the command that turn the refused run into this one
	Config  Config
	Stage   int
	Cost    zero.Cost
}

func (e *FitError) Unwrap() error { return memory.ErrLimit }

func (e *FitError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "zeroshard: the plan needs %d bytes (%s) on each rank, the limit is %d (%s; --device-memory)\n", e.Peak, memory.FormatBytes(e.Peak), e.Limit, memory.FormatBytes(e.Limit))
	fmt.Fprintf(&b, "  %-8s %14s %14s %14s\n", "stage", "peak", "model state", "other")
	for _, c := range e.Stages {
		fits := "does not fit"
		if c.Cost.Peak() <= e.Limit {
			fits = "fits"
		}
		fmt.Fprintf(&b, "  %-8d %14d %14d %14d %14s\n", c.Stage, c.Cost.Peak(), c.Cost.ModelState, c.Cost.Peak()-c.Cost.ModelState, fits)
	}
	if len(e.Nearest) == 0 {
		b.WriteString("no stage, prefetch, recompute, offload or number of ranks with the same result fits: use a smaller model, sequence or micro-batch")
		return b.String()
	}
	b.WriteString("settings with the same result that fit:")
	for _, c := range e.Nearest {
		fmt.Fprintf(&b, "\n  %-48s %14d bytes", c.Setting, c.Cost.Peak())
	}
	return b.String()
}

// CheckFit returns a *FitError if pr, compiled from c, needs more than c.DeviceMemory.
func CheckFit(c Config, pr *zero.Program) error {
	peak := pr.Cost().Peak()
	if c.DeviceMemory == 0 || peak <= c.DeviceMemory {
		return nil
	}
	c = c.withDefaults()
	e := &FitError{Limit: c.DeviceMemory, Peak: peak}
	for stage := range zero.Stages {
		if cand, ok := try(c, atStage(c, stage)); ok {
			e.Stages = append(e.Stages, cand)
		}
	}
	if !c.Inference {
		e.Nearest = nearest(c)
	}
	return e
}

// atStage is c at another stage, without what that stage may refuse: the window, and what it cannot offload.
func atStage(c Config, stage int) Config {
	if stage == c.Stage {
		return c
	}
	c.Stage, c.Window = stage, 0
	if c.Offload.validate(stage) != nil {
		c.Offload.Ratio = 0
	}
	if c.Offload.validate(stage) != nil {
		c.Offload.Param = ""
	}
	if c.Offload.validate(stage) != nil {
		c.Offload.Optimizer = ""
	}
	return c
}

const maxNearest = 4

// nearest looks for neighbours of c that fit. Of each stage and arrangement of ranks it takes the least change alone.
func nearest(c Config) (list []Candidate) {
	type kind struct{ stage, ranks, replicas int }
	settled := map[kind]bool{}
	for _, near := range neighbours(c) {
		if near.Ranks == near.Replicas && near.Stage != c.Stage {
			continue // nothing is sharded over one rank, at any stage
		}
		k := kind{near.Stage, near.Ranks, near.Replicas}
		done, met := settled[k]
		if !met {
			done = hopeless(near)
		}
		if !done {
			if cand, ok := try(c, near); ok && cand.Cost.Peak() <= c.DeviceMemory {
				list, done = append(list, cand), true
			}
		}
		if settled[k] = done; len(list) == maxNearest {
			return list
		}
	}
	return append(list, offloaded(c, maxNearest-len(list))...)
}

// offloaded looks for up to n settings with the same result that fit with state outside the device: what is left when no other stage,
// schedule or arrangement of ranks does.
func offloaded(c Config, n int) (list []Candidate) {
	found, _, err := Search(c, c.DeviceMemory, 4*maxNearest, DefaultRates)
	if err != nil {
		return nil
	}
	for _, f := range found {
		if !f.Bits || f.Config.Offload.Optimizer == c.Offload.Optimizer && f.Config.Offload.Param == c.Offload.Param {
			continue
		}
		if cand, ok := try(c, f.Config); ok && cand.Cost.Peak() <= c.DeviceMemory && len(list) < n {
			list = append(list, cand)
		}
	}
	return list
}

// hopeless says that a step of one micro-batch a rank does not fit, with everything that saves memory: quick to compile, where the whole
// step of a large model is not, and never more than that needs.
func hopeless(c Config) bool {
	c.GlobalBatch, c.EvalLeaves, c.Prefetch, c.Recompute, c.Window = c.MicroBatch*c.Ranks, 1, 0, 1, 0
	pr, err := Plan(c)
	return err == nil && pr.Cost().Peak() > c.DeviceMemory
}

// neighbours lists settings with the same result that may need less, least change first: those that change the schedule alone (stage,
// then prefetch, then recompute), then how ranks are arranged (replicas), then how many there are.
func neighbours(c Config) []Config {
	list := []Config{c}
	vary := func(values []int, set func(c *Config, v int)) {
		var more []Config
		for _, v := range values {
			for _, near := range list {
				set(&near, v)
				more = append(more, near)
			}
		}
		list = more
	}
	vary(nearestFirst(c.Stage, len(zero.Stages)), func(c *Config, v int) { c.Stage = v })
	vary(distinct(c.Prefetch, 0), func(c *Config, v int) { c.Prefetch = v })
	vary(distinct(c.Recompute, 1), func(c *Config, v int) { c.Recompute = v })
	vary(distinct(c.Replicas, 1), func(c *Config, v int) { c.Replicas = v })
	vary(doubled(c.Ranks, c.GlobalBatch/c.MicroBatch), func(c *Config, v int) { c.Ranks = v })
	for i := range list {
		if near := &list[i]; near.Stage != c.Stage || near.Replicas != c.Replicas || near.Ranks != c.Ranks {
			near.Window = 0 // windows that suit c may not suit it
		}
	}
	return list
}

// doubled is n, 2n, 4n … below most, and most: few enough to compile each.
func doubled(n, most int) []int {
	list := []int{n}
	for n < most {
		n = min(2*n, most)
		list = append(list, n)
	}
	return list
}

func distinct(a, b int) []int {
	if a == b {
		return []int{a}
	}
	return []int{a, b}
}

// nearestFirst is 0 … n−1 by distance from at, upwards first.
func nearestFirst(at, n int) []int {
	list := []int{at}
	for d := 1; d < n; d++ {
		for _, i := range [...]int{at + d, at - d} {
			if 0 <= i && i < n {
				list = append(list, i)
			}
		}
	}
	return list
}

// try compiles a neighbour of c and names it by the flags that turn c into it.
func try(c, near Config) (Candidate, bool) {
	pr, err := Plan(near)
	if err != nil {
		return Candidate{}, false
	}
	return Candidate{Setting: flagsFrom(c, near), Config: near, Stage: near.Stage, Cost: pr.Cost()}, true
}
