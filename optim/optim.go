package optim

import (
	"errors"
	"fmt"
	"math"

	"zeroshard/device"
	"zeroshard/kernels"
)

// Optimizer updates pieces of flat parameters element by element: its result for an element depends on that element's values
// and on Hyper alone.
type Optimizer interface {
	Name() string
	// States names the values that the optimizer keeps per element, fp32, zero at the start: "m", "v".
	States() []string
	// Update is called for each piece of each parameter of this rank's shard, once a step.
	Update(s device.Stream, k kernels.Vector, h Hyper, x Slice) error
}

// Hyper is what changes from step to step.
type Hyper struct {
	Step   int     // 1 for the first: what randomness and messages speak of
	Update int     // 1 for the first: bias correction counts it; a skipped step is none. 0 = Step
	LR     float64 // learning rate, 0 or more
}

// Updates is the number of this update: Update, or Step where no step is ever skipped.
func (h Hyper) Updates() int {
	if h.Update == 0 {
		return h.Step
	}
	return h.Update
}

// Validate reports all faults at once (ErrOptimizer). A rate that is NaN, or infinite in fp32, would ruin every weight in one step.
func (h Hyper) Validate() error {
	var errs []error
	if h.Step < 1 {
		errs = append(errs, fmt.Errorf("%w: step %d: steps count from 1", ErrOptimizer, h.Step))
	}
	if h.Update < 0 || h.Update > max(h.Step, 0) {
		errs = append(errs, fmt.Errorf("%w: update %d of step %d: use 1 to the step, or 0 for the step", ErrOptimizer, h.Update, h.Step))
	}
	if !(h.LR >= 0 && h.LR <= math.MaxFloat32) {
		errs = append(errs, fmt.Errorf("%w: learning rate %v: use 0 or more", ErrOptimizer, h.LR))
	}
	return errors.Join(errs...)
}

// Slice is one piece of one parameter. P, G and States have equal lengths, fp32. Control holds scale and skip (kernels.AdamW).
type Slice struct {
	P, G    device.Buffer
	States  []device.Buffer
	Control device.Buffer
	Decay   bool // weight decay applies
}
