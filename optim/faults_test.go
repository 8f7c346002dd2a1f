package optim_test

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"zeroshard/optim"
)

// Each fault has its text, which says the setting, its value and what to use.
func TestFaults(t *testing.T) {
	adam, rates := optim.DefaultAdamW(), optim.Schedule{Kind: optim.Cosine, Base: 1e-3, Steps: 10}
	inf, nan := math.Inf(1), math.NaN()
	with := func(change func(a *optim.AdamW, s *optim.Schedule)) (optim.AdamW, optim.Schedule) {
		a, s := adam, rates
		change(&a, &s)
		return a, s
	}
	type validator interface{ Validate() error }
	a := func(change func(*optim.AdamW)) validator {
		v, _ := with(func(a *optim.AdamW, _ *optim.Schedule) { change(a) })
		return v
	}
	s := func(change func(*optim.Schedule)) validator {
		_, v := with(func(_ *optim.AdamW, s *optim.Schedule) { change(s) })
		return v
	}
	for _, c := range []struct {
		v    validator
		text string
	}{
		{adam, ""}, {rates, ""}, {optim.SGD{}, ""}, {optim.SGD{Momentum: 0.99, Decay: 999}, ""},
		{optim.Hyper{Step: 1}, ""}, {optim.Hyper{Step: 9, Update: 9, LR: math.MaxFloat32}, ""},
		{a(func(a *optim.AdamW) { a.Beta1, a.Beta2, a.Decay = 0, 0, 0 }), ""},

		{a(func(a *optim.AdamW) { a.Beta1 = 1 }), "AdamW's beta1 1: use at least 0 and less than 1"},
		{a(func(a *optim.AdamW) { a.Beta1 = -0.1 }), "AdamW's beta1 -0.1: use at least 0 and less than 1"},
		{a(func(a *optim.AdamW) { a.Beta1 = nan }), "AdamW's beta1 NaN: use at least 0 and less than 1"},
		{a(func(a *optim.AdamW) { a.Beta2 = 1 }), "AdamW's beta2 1: use at least 0 and less than 1"},
		{a(func(a *optim.AdamW) { a.Beta2 = nan }), "AdamW's beta2 NaN: use at least 0 and less than 1"},
		{a(func(a *optim.AdamW) { a.Eps = 0 }), "AdamW's eps 0: use more than 0 and less than 1"},
		{a(func(a *optim.AdamW) { a.Eps = 1 }), "AdamW's eps 1: use more than 0 and less than 1"},
		{a(func(a *optim.AdamW) { a.Decay = -1 }), "AdamW's decay -1: use 0 or more"},
		{a(func(a *optim.AdamW) { a.Decay = inf }), "AdamW's decay +Inf: use 0 or more"},

		{optim.SGD{Momentum: 1}, "SGD's momentum 1: use at least 0 and less than 1"},
		{optim.SGD{Momentum: nan}, "SGD's momentum NaN: use at least 0 and less than 1"},
		{optim.SGD{Decay: -1}, "SGD's decay -1: use 0 or more"},
		{optim.SGD{Decay: inf}, "SGD's decay +Inf: use 0 or more"},

		{s(func(s *optim.Schedule) { s.Kind = "" }), `schedule "": use cosine, linear or constant`},
		{s(func(s *optim.Schedule) { s.Kind = "Cosine" }), `schedule "Cosine": use cosine, linear or constant`},
		{s(func(s *optim.Schedule) { s.Base = -1 }), "learning rate -1: use 0 or more"},
		{s(func(s *optim.Schedule) { s.Base = nan }), "learning rate NaN: use 0 or more"},
		{s(func(s *optim.Schedule) { s.Base = inf }), "learning rate +Inf: use 0 or more"},
		{s(func(s *optim.Schedule) { s.Warmup = -1 }), "warm-up of -1 steps: use 0 or more"},
		{s(func(s *optim.Schedule) { s.Steps = 0 }), "0 steps: use 1 or more"},
		{s(func(s *optim.Schedule) { s.Floor = -0.1 }), "floor -0.1: use 0 to 1"},
		{s(func(s *optim.Schedule) { s.Floor = 1.5 }), "floor 1.5: use 0 to 1"},
		{s(func(s *optim.Schedule) { s.Floor = nan }), "floor NaN: use 0 to 1"},

		{optim.Hyper{}, "step 0: steps count from 1"},
		{optim.Hyper{Step: 3, Update: -1}, "update -1 of step 3: use 1 to the step, or 0 for the step"},
		{optim.Hyper{Step: 3, Update: 4}, "update 4 of step 3: use 1 to the step, or 0 for the step"},
		{optim.Hyper{Step: 1, LR: -1e-9}, "learning rate -1e-09: use 0 or more"},
		{optim.Hyper{Step: 1, LR: nan}, "learning rate NaN: use 0 or more"},
		{optim.Hyper{Step: 1, LR: 4e38}, "learning rate 4e+38: use 0 or more"},
	} {
		err := c.v.Validate()
		if c.text == "" {
			if err != nil {
				t.Errorf("%+v: %v", c.v, err)
			}
			continue
		}
		if !errors.Is(err, optim.ErrOptimizer) || fmt.Sprint(err) != "optim: setting: "+c.text {
			t.Errorf("%+v: %v\nwant optim: setting: %s", c.v, err, c.text)
		}
	}
}

// Both optimizers are what Config.Validate and others look for.
func TestNames(t *testing.T) {
	for _, c := range []struct {
		o      optim.Optimizer
		name   string
		states string
	}{
		{optim.DefaultAdamW(), "adamw", "[m v]"},
		{optim.SGD{Momentum: 0.5}, "sgd", "[m]"},
		{optim.SGD{}, "sgd", "[]"},
	} {
		if c.o.Name() != c.name || fmt.Sprint(c.o.States()) != c.states {
			t.Errorf("%+v is %s with states %v", c.o, c.o.Name(), c.o.States())
		}
	}
}
