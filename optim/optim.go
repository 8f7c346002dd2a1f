package optim

import (
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
	Step int     // 1 for the first: bias correction counts from it
	LR   float64 // learning rate
}

// Slice is one piece of one parameter. P, G and States have equal lengths, fp32. Control holds scale and skip (kernels.AdamW).
type Slice struct {
	P, G    device.Buffer
	States  []device.Buffer
	Control device.Buffer
	Decay   bool // weight decay applies
}
