package optim

import (
	"errors"
	"fmt"

	"zeroshard/device"
	"zeroshard/kernels"
)

// AdamW is Adam with decoupled weight decay (arXiv 1711.05101), as PyTorch's: see kernels.AdamW for the formula. States m and v,
// 8 bytes an element.
type AdamW struct {
	Beta1, Beta2 float64 // Bits: changed.
	Eps          float64 // Bits: changed.
	Decay        float64 // applied where Slice.Decay. Bits: changed.
}

// DefaultAdamW is the usual choice for GPTs: 0.9, 0.95, 1e-8, decay 0.1.
func DefaultAdamW() AdamW { return AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, Decay: 0.1} }

// Validate reports all faults at once.
func (a AdamW) Validate() error {
	var errs []error
	check := func(ok bool, format string, v float64) {
		if !ok {
			errs = append(errs, fmt.Errorf("%w: "+format, ErrOptimizer, v))
		}
	}
	check(a.Beta1 >= 0 && float32(a.Beta1) < 1, "AdamW's beta1 %v: use at least 0 and less than 1", a.Beta1)
	check(a.Beta2 >= 0 && float32(a.Beta2) < 1, "AdamW's beta2 %v: use at least 0 and less than 1", a.Beta2)
	check(a.Eps > 0 && a.Eps < 1, "AdamW's eps %v: use more than 0 and less than 1", a.Eps)
	check(a.Decay >= 0 && a.Decay < 1e3, "AdamW's decay %v: use 0 or more", a.Decay)
	return errors.Join(errs...)
}

// Name is "adamw".
func (AdamW) Name() string { return "adamw" }

// States are the first and second moments.
func (AdamW) States() []string { return []string{"m", "v"} }

// Update runs one step on a piece.
func (a AdamW) Update(s device.Stream, k kernels.Vector, h Hyper, x Slice) error {
	n := h.Updates()
	if n < 1 {
		return fmt.Errorf("%w: AdamW at update %d: they count from 1", ErrOptimizer, n)
	}
	call := kernels.AdamW{P: x.P, G: x.G, M: x.States[0], V: x.States[1], Control: x.Control,
		LR: float32(h.LR), Beta1: float32(a.Beta1), Beta2: float32(a.Beta2), Eps: float32(a.Eps),
		C1: float32(1 - power(a.Beta1, n)), C2: float32(1 - power(a.Beta2, n))}
	if x.Decay {
		call.Decay = float32(a.Decay)
	}
	k.AdamW(s, call)
	return nil
}

// power is bⁿ by squaring: a fixed sequence of float64 products, the same on every machine, which math.Pow does not promise.
func power(b float64, n int) float64 {
	p := 1.0
	for ; n > 0; n >>= 1 {
		if n&1 != 0 {
			p = float64(p * b)
		}
		b = float64(b * b)
	}
	return p
}
