package gpt

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"zeroshard/kernels/ref"
	"zeroshard/models"
	"zeroshard/models/modeltest"
	"zeroshard/prng"
)

// odd is small, and odd where it can be: prime vocabulary, more positions than tokens.
var odd = Config{Layers: 2, Heads: 2, Width: 6, Vocab: 11, Positions: 7, Bias: true}

var oddShape = models.Shape{Batch: 4, Seq: 5}

// change is odd with a change.
func change(f func(*Config)) Config {
	c := odd
	f(&c)
	return c
}

func leafOf(cfg Config, budget int, s models.Shape) *modeltest.Leaf {
	return modeltest.NewLeaf(ref.New(), build(cfg, budget), s, cfg.Vocab)
}

func train(t *testing.T, l *modeltest.Leaf) *modeltest.Result {
	t.Helper()
	r, err := l.Train()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Every variant is held to the contract, with the logits in several chunks and in one.
func TestContract(t *testing.T) {
	for name, cfg := range map[string]Config{
		"gpt2":               odd,
		"no biases":          change(func(c *Config) { c.Bias = false }),
		"dropout":            change(func(c *Config) { c.Dropout = 0.3 }),
		"narrow mlp":         change(func(c *Config) { c.Inner = 4 }),
		"wide mlp":           change(func(c *Config) { c.Inner = 31 }),
		"heads of 1":         change(func(c *Config) { c.Heads = 6 }),
		"dropout, no biases": change(func(c *Config) { c.Dropout, c.Bias = 0.1, false }),
	} {
		for _, budget := range []int{1, logitsBudget} {
			t.Run(fmt.Sprintf("%s, budget %d", name, budget), func(t *testing.T) {
				modeltest.Run(t, ref.New(), build(cfg, budget), oddShape, cfg.Vocab)
			})
		}
	}
}

// Loss and every element of every gradient agree with the float64 oracle.
func TestOracle(t *testing.T) {
	for name, cfg := range map[string]Config{
		"gpt2":       odd,
		"no biases":  change(func(c *Config) { c.Bias = false }),
		"narrow mlp": change(func(c *Config) { c.Inner, c.Layers = 4, 1 }),
	} {
		t.Run(name, func(t *testing.T) {
			l := leafOf(cfg, 1, oddShape)
			l.Targets[3], l.Targets[17] = -1, -1
			r, o := train(t, l), newOracle(cfg, l.Params)
			loss := func() float64 { return o.loss(l.Tokens, l.Targets, l.Shape.Seq) }
			if want := loss(); math.Abs(r.Loss-want) > 1e-5*want || r.Valid != l.Shape.Rows()-2 {
				t.Errorf("loss %v of %d, oracle %v", r.Loss, r.Valid, want)
			}
			for name, p := range o.params {
				far := 0.0
				for i := range p {
					far = max(far, math.Abs(float64(r.Grads[name][i])-derivative(&p[i], loss)))
				}
				if !(far <= 1e-5) {
					t.Errorf("%s: gradient is %.3g off", name, far)
				}
			}
		})
	}
}

// The gradient of the tied table is the sum of its gradients as embedding and as projection (pains row 5).
func TestTiedGradient(t *testing.T) {
	l := leafOf(odd, 1, oddShape)
	r, o := train(t, l), newOracle(odd, l.Params)
	loss := func() float64 { return o.loss(l.Tokens, l.Targets, l.Shape.Seq) }
	o.head = slices.Clone(o.head)
	for i, g := range r.Grads["wte.weight"] {
		embed, head := derivative(&o.params["wte.weight"][i], loss), derivative(&o.head[i], loss)
		if math.Abs(float64(g)-embed-head) > 1e-5 {
			t.Errorf("wte[%d]: gradient %v, as embedding %v, as projection %v", i, g, embed, head)
		}
	}
}

// A sequence's logits are the same bits alone and beside others, and do not depend on later tokens.
func TestLogitsDependOnPrefixAlone(t *testing.T) {
	all := leafOf(odd, logitsBudget, oddShape)
	logits, err := all.Logits()
	if err != nil {
		t.Fatal(err)
	}
	for b := range oddShape.Batch {
		one := leafOf(odd, logitsBudget, models.Shape{Batch: 1, Seq: 7})
		copy(one.Tokens, all.Tokens[b*5:(b+1)*5])
		copy(one.Targets, []int32{-1, -1, -1, -1, 0, -1, -1}) // the row to pick; two more tokens follow
		got, err := one.Logits()
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, logits[b*odd.Vocab:(b+1)*odd.Vocab]) {
			t.Errorf("sequence %d alone: %v, want %v", b, got, logits[b*odd.Vocab:(b+1)*odd.Vocab])
		}
	}
}

// Plain gradient descent on one leaf learns it by heart.
func TestOverfits(t *testing.T) {
	l := leafOf(odd, logitsBudget, oddShape)
	for _, f := range l.Model.Flats() {
		for _, p := range f.Params {
			l.Model.(models.Initializer).Init(prng.New(1), p, 0, l.Params[p.Name])
		}
	}
	for i := range l.Tokens { // targets must follow from the prefix
		l.Tokens[i], l.Targets[i] = int32(i*i%11), int32((i+i/5)%11)
	}
	first, last := 0.0, 0.0
	for step := range 400 {
		r := train(t, l)
		if last = r.Loss; step == 0 {
			first = last
		}
		for name, g := range r.Grads {
			for i := range g {
				l.Params[name][i] -= 0.03 * g[i]
			}
		}
	}
	if uniform := 20 * math.Log(11); math.Abs(first-uniform) > 0.1 || last > 0.1*first {
		t.Errorf("loss %v at first, want %v; %v at last, want a tenth", first, uniform, last)
	}
}

func TestUnitsRefuse(t *testing.T) {
	m := build(odd, logitsBudget)
	for _, u := range m.Units() {
		for _, s := range []models.Shape{{Batch: 1, Seq: 8}, {Batch: 0, Seq: 3}, {Batch: 1, Seq: 0}, {Batch: 1 << 40, Seq: 7}} {
			if err := u.Forward(&models.Call{Shape: s}); !errors.Is(err, ErrShape) {
				t.Errorf("%s: shape %+v: %v", u.Name(), s, err)
			}
		}
	}
	units := m.Units()
	for name, err := range map[string]error{
		"backward of the loss":        units[3].Backward(&models.Call{}),
		"loss that does not add":      units[3].Forward(&models.Call{Shape: oddShape}),
		"embedding that does not add": units[0].Backward(&models.Call{Shape: oddShape}),
	} {
		if !errors.Is(err, ErrCall) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
