package optim

import (
	"errors"
	"fmt"

	"zeroshard/device"
	"zeroshard/kernels"
)

// SGD is stochastic gradient descent with momentum, as PyTorch's with dampening 0: see kernels.SGD. State m, or none without
// momentum.
type SGD struct {
	Momentum float64 // 0 = none. Bits: changed.
	Decay    float64 // L2, applied where Slice.Decay. Bits: changed.
}

// Validate reports all faults at once.
func (o SGD) Validate() error {
	var errs []error
	if !(o.Momentum >= 0 && o.Momentum < 1) {
		errs = append(errs, fmt.Errorf("%w: SGD's momentum %v: use at least 0 and less than 1", ErrOptimizer, o.Momentum))
	}
	if !(o.Decay >= 0 && o.Decay < 1e3) {
		errs = append(errs, fmt.Errorf("%w: SGD's decay %v: use 0 or more", ErrOptimizer, o.Decay))
	}
	return errors.Join(errs...)
}

// Name is "sgd".
func (SGD) Name() string { return "sgd" }

// States is the momentum, if there is any.
func (o SGD) States() []string {
	if o.Momentum == 0 {
		return nil
	}
	return []string{"m"}
}

// Update runs one step on a piece.
func (o SGD) Update(s device.Stream, k kernels.Vector, h Hyper, x Slice) error {
	call := kernels.SGD{P: x.P, G: x.G, Control: x.Control, LR: float32(h.LR), Momentum: float32(o.Momentum)}
	if len(x.States) > 0 {
		call.M = x.States[0]
	}
	if x.Decay {
		call.Decay = float32(o.Decay)
	}
	k.SGD(s, call)
	return nil
}
