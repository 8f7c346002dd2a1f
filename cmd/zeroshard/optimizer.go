package main

import (
	"strings"

	"zeroshard/optim"
)

// optimizer is what the flags choose.
func (l *learning) optimizer(j *job) optim.Optimizer {
	if j.optimizer == "sgd" {
		return optim.SGD{Momentum: j.momentum, Decay: l.decay}
	}
	return optim.AdamW{Beta1: l.beta1, Beta2: l.beta2, Eps: l.eps, Decay: l.decay}
}

// rates is the learning rate by step. It falls to a tenth.
func (l *learning) rates() optim.Schedule {
	return optim.Schedule{Kind: optim.Kind(l.schedule), Base: l.lr, Warmup: l.warmup, Steps: l.steps, Floor: 0.1}
}

// validator is a setting that knows what is wrong with it.
type validator interface{ Validate() error }

// take adds the faults that v finds in itself.
func (f *faults) take(v any) {
	x, ok := v.(validator)
	if !ok {
		return
	}
	if err := x.Validate(); err != nil {
		for line := range strings.Lines(err.Error()) {
			f.lines = append(f.lines, strings.TrimPrefix(strings.TrimSpace(line), optim.ErrOptimizer.Error()+": "))
		}
	}
}
