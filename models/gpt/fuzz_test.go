package gpt

import (
	"slices"
	"testing"

	"zeroshard/models"
)

// FuzzTrain runs small models of any shape under the strict runner: windows exact, inputs kept, outputs whole, the same bits with
// recomputation and with another size of chunk for the loss.
func FuzzTrain(f *testing.F) {
	f.Add(uint8(2), uint8(2), uint8(3), uint8(11), uint8(0), uint8(4), uint8(5), true, false)
	f.Add(uint8(1), uint8(3), uint8(1), uint8(1), uint8(1), uint8(1), uint8(1), false, true)
	f.Add(uint8(1), uint8(1), uint8(7), uint8(97), uint8(40), uint8(3), uint8(13), true, true)
	f.Fuzz(func(t *testing.T, layers, heads, size, vocab, inner, batch, seq uint8, bias, drop bool) {
		small := func(v uint8, most int) int { return 1 + int(v)%most }
		s := models.Shape{Batch: small(batch, 4), Seq: small(seq, 16)}
		cfg := Config{Layers: small(layers, 3), Heads: small(heads, 4), Vocab: small(vocab, 120), Positions: s.Seq + int(vocab)%2,
			Inner: int(inner) % 50, Bias: bias}
		cfg.Width = cfg.Heads * small(size, 9)
		if drop {
			cfg.Dropout = 0.25
		}
		if err := cfg.Validate(); err != nil {
			t.Fatal(err)
		}
		l := leafOf(cfg, 1, s)
		want := train(t, l)
		l.Recompute = true
		got := train(t, l)
		if whole := train(t, leafOf(cfg, logitsBudget, s)); whole.Loss != want.Loss {
			t.Errorf("loss %v in chunks, %v in one", want.Loss, whole.Loss)
		}
		for name, g := range want.Grads {
			if !slices.Equal(g, got.Grads[name]) && !slices.ContainsFunc(g, func(v float32) bool { return v != v }) {
				t.Errorf("%s: recomputation changes the gradient", name)
			}
		}
	})
}
