package gpt

import (
	"slices"
	"testing"

	"zeroshard/device"
	"zeroshard/kernels"
	"zeroshard/kernels/ref"
	"zeroshard/models"
	"zeroshard/models/modeltest"
	"zeroshard/prng"
)

// keys notes which random numbers a model draws.
type keys struct {
	kernels.Net
	forward, backward []prng.Key
}

func (k *keys) Attention(s device.Stream, a kernels.Attention) {
	if a.Drop > 0 {
		k.forward = append(k.forward, a.Key)
	}
	k.Net.Attention(s, a)
}

func (k *keys) AttentionBackward(s device.Stream, a kernels.AttentionBackward) {
	if a.Drop > 0 {
		k.backward = append(k.backward, a.Key)
	}
	k.Net.AttentionBackward(s, a)
}

// Dropout is called on Out and Saved in place going forward, and from one buffer to another going backward.
func (k *keys) Dropout(s device.Stream, dst, x kernels.Buffer, p float32, key prng.Key) {
	if &dst.Float32s()[0] == &x.Float32s()[0] {
		k.forward = append(k.forward, key)
	} else {
		k.backward = append(k.backward, key)
	}
	k.Net.Dropout(s, dst, x, p, key)
}

// Each (leaf, unit, site) draws from a key of its own, and backward uses the masks of forward.
func TestDropoutKeys(t *testing.T) {
	cfg := change(func(c *Config) { c.Dropout = 0.2 })
	seen := map[prng.Key]bool{}
	for leaf := range uint64(3) {
		k := &keys{Net: ref.New()}
		l := modeltest.NewLeaf(k, build(cfg, logitsBudget), oddShape, cfg.Vocab)
		l.Key = prng.New(1).Sub(leaf)
		train(t, l)
		if want := 1 + 3*cfg.Layers; len(k.forward) != want {
			t.Fatalf("%d masks in forward, want %d", len(k.forward), want)
		}
		for _, key := range k.forward {
			if seen[key] {
				t.Errorf("leaf %d: key %v is used twice", leaf, key)
			}
			seen[key] = true
			if !slices.Contains(k.backward, key) {
				t.Errorf("leaf %d: key %v is not used in backward", leaf, key)
			}
		}
		if len(k.backward) != len(k.forward) {
			t.Errorf("%d masks in backward, %d in forward", len(k.backward), len(k.forward))
		}
	}
}

// Outside Train dropout is off; in Train the leaf's key changes the result.
func TestDropoutModes(t *testing.T) {
	with, without := leafOf(change(func(c *Config) { c.Dropout = 0.5 }), 1, oddShape), leafOf(odd, 1, oddShape)
	a, err := with.Eval()
	if err != nil {
		t.Fatal(err)
	}
	b, err := without.Eval()
	if err != nil {
		t.Fatal(err)
	}
	if a.Loss != b.Loss {
		t.Errorf("evaluation loss %v with dropout, %v without", a.Loss, b.Loss)
	}
	first := train(t, with)
	with.Key = prng.New(99)
	if second := train(t, with); first.Loss == second.Loss || first.Loss == a.Loss {
		t.Errorf("training losses %v and %v of two leaves, %v without dropout", first.Loss, second.Loss, a.Loss)
	}
}

// Where everything is dropped but what residuals carry, the model still trains: no 0/0.
func TestDropoutHigh(t *testing.T) {
	for _, rate := range []float32{0.001, 0.99} {
		l := leafOf(change(func(c *Config) { c.Dropout = rate }), 1, models.Shape{Batch: 1, Seq: 3})
		for name, g := range train(t, l).Grads {
			if slices.ContainsFunc(g, func(v float32) bool { return v != v }) {
				t.Errorf("rate %v: %s has NaN", rate, name)
			}
		}
	}
}
