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
	Nearest     []Candidate // settings with the same result that fit, least change first
}

// Candidate is a setting and what it needs.
type Candidate struct {
	Setting string // as flags
	Stage   int
	Cost    zero.Cost
}

func (e *FitError) Unwrap() error { return memory.ErrLimit }

func (e *FitError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "zeroshard: the plan needs %s on each rank, the limit is %s (--device-memory)\n", memory.FormatBytes(e.Peak), memory.FormatBytes(e.Limit))
	fmt.Fprintf(&b, "  %-8s %14s %14s %14s %14s\n", "stage", "peak", "model state", "other", "")
	for _, c := range e.Stages {
		fits := "does not fit"
		if c.Cost.Peak() <= e.Limit {
			fits = "fits"
		}
		fmt.Fprintf(&b, "  %-8d %14d %14d %14d %14s\n", c.Stage, c.Cost.Peak(), c.Cost.ModelState, c.Cost.Peak()-c.Cost.ModelState, fits)
	}
	if len(e.Nearest) == 0 {
		b.WriteString("no stage, recompute or number of ranks with the same result fits: use a smaller model, sequence or micro-batch")
		return b.String()
	}
	b.WriteString("settings with the same result that fit:")
	for _, c := range e.Nearest {
		fmt.Fprintf(&b, "\n  %-40s %14d bytes", c.Setting, c.Cost.Peak())
	}
	return b.String()
}

// CheckFit returns a *FitError if pr, compiled from c, needs more than c.DeviceMemory.
func CheckFit(c Config, pr *zero.Program) error {
	peak := pr.Cost().Peak()
	if c.DeviceMemory == 0 || peak <= c.DeviceMemory {
		return nil
	}
	e := &FitError{Limit: c.DeviceMemory, Peak: peak}
	for stage := range zero.Stages {
		if cand, ok := try(c, stage, c.Recompute, c.Ranks); ok {
			e.Stages = append(e.Stages, cand)
		}
	}
	// Least change first: the stage alone, then with recompute, then on more ranks.
	leaves := c.GlobalBatch / c.MicroBatch
	for ranks := c.Ranks; ranks <= leaves && len(e.Nearest) < 4; ranks++ {
		for _, recompute := range []int{c.Recompute, 1} {
			for stage := range zero.Stages {
				cand, ok := try(c, stage, recompute, ranks)
				if ok && cand.Cost.Peak() <= c.DeviceMemory && len(e.Nearest) < 4 {
					e.Nearest = append(e.Nearest, cand)
				}
			}
			if c.Recompute == 1 {
				break
			}
		}
	}
	return e
}

func try(c Config, stage, recompute, ranks int) (Candidate, bool) {
	c.Stage, c.Recompute, c.Ranks = stage, recompute, ranks
	pr, err := Plan(c)
	if err != nil {
		return Candidate{}, false
	}
	s := fmt.Sprintf("--stage %d", stage)
	switch recompute {
	case 0:
	case 1:
		s += " --recompute all"
	default:
		s += fmt.Sprintf(" --recompute %d", recompute)
	}
	return Candidate{Setting: s + fmt.Sprintf(" --ranks %d", ranks), Stage: stage, Cost: pr.Cost()}, true
}
