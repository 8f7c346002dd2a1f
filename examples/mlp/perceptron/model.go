package perceptron

import (
	"math"

	"zeroshard/models"
	"zeroshard/prng"
	"zeroshard/shard"
)

// Config is the model's size.
type Config struct {
	Vocab   int // V
	Context int // K tokens that a prediction sees
	Width   int // d, elements of a token's vector
	Hidden  int // h, elements of the hidden layer
}

// Model is the three units and their parameters. It is a models.Model and a models.Initializer.
type Model struct{ cfg Config }

// New returns a model.
func New(cfg Config) *Model { return &Model{cfg} }

// Flats are three lists of parameters, each stored, gathered and reduced in one piece. The table has two readers, embed and loss:
// that is all there is to tying weights.
func (m *Model) Flats() []shard.FlatSpec {
	c := m.cfg
	return []shard.FlatSpec{
		{Name: "table", Params: []shard.Param{{Name: "table", Shape: []int{c.Vocab, c.Width}}}},
		{Name: "hidden", Params: []shard.Param{
			w1: {Name: "hidden.w1", Shape: []int{c.Context * c.Width, c.Hidden}},
			b1: {Name: "hidden.b1", Shape: []int{c.Hidden}, NoDecay: true},
			w2: {Name: "hidden.w2", Shape: []int{c.Hidden, c.Width}},
			b2: {Name: "hidden.b2", Shape: []int{c.Width}, NoDecay: true},
		}},
		{Name: "bias", Params: []shard.Param{{Name: "bias", Shape: []int{c.Vocab}, NoDecay: true}}},
	}
}

// Units in the order of computation.
func (m *Model) Units() []models.Unit {
	return []models.Unit{&embed{m.cfg}, &hidden{m.cfg}, &loss{m.cfg}}
}

// Init makes matrices normal with deviation 1/√rows, the table with deviation 0.1, biases zero.
func (m *Model) Init(key prng.Key, p shard.Param, lo int, dst []float32) {
	if len(p.Shape) == 1 {
		clear(dst)
		return
	}
	scale := float32(0.1)
	if p.Name != "table" {
		scale = float32(1 / math.Sqrt(float64(p.Shape[0])))
	}
	key.Named(p.Name).FillNormal(dst, uint64(lo))
	for i := range dst {
		dst[i] *= scale
	}
}
