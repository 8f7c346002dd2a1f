package gpt

import (
	"fmt"

	"zeroshard/models"
	"zeroshard/shard"
)

// root is the flat that embed and loss share.
const root = "root"

// The parameters of root, in its order. Call.P and Call.G are indexed by these.
const (
	wte = iota
	wpe
	lnfW
	lnfB
)

// The parameters of a block: weights first, so that a model without biases has the same indices.
const (
	ln1W = iota
	qkvW
	attW
	ln2W
	fcW
	projW
	ln1B
	qkvB
	attB
	ln2B
	fcB
	projB
)

// Model is a GPT.
type Model struct {
	cfg   Config
	flats []shard.FlatSpec
	units []models.Unit
}

var (
	_ models.Model       = (*Model)(nil)
	_ models.Initializer = (*Model)(nil)
	_ models.Decoder     = (*Model)(nil)
)

// New returns the model of cfg. Errors are Validate's.
func New(cfg Config) (*Model, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return build(cfg, logitsBudget), nil
}

// build is New with the budget of a chunk's logits, which tests make small.
func build(cfg Config, budget int) *Model {
	m := &Model{cfg: cfg, flats: []shard.FlatSpec{{Name: root, Params: rootParams(cfg)}}, units: []models.Unit{newEmbed(cfg)}}
	for i := range cfg.Layers {
		name := fmt.Sprintf("h.%d", i)
		m.flats = append(m.flats, shard.FlatSpec{Name: name, Params: blockParams(cfg, name)})
		m.units = append(m.units, newBlock(cfg, name))
	}
	m.units = append(m.units, newLoss(cfg, budget))
	return m
}

// Config is the configuration that m was made from.
func (m *Model) Config() Config { return m.cfg }

// Positions is the most tokens of a text.
func (m *Model) Positions() int { return m.cfg.Positions }

// CheckShape is Config.CheckShape.
func (m *Model) CheckShape(s models.Shape) error { return m.cfg.CheckShape(s) }

// Flats returns root and one flat for each block.
func (m *Model) Flats() []shard.FlatSpec { return m.flats }

// Units returns embed, the blocks and loss.
func (m *Model) Units() []models.Unit { return m.units }

// Params is the number of parameters, each counted once.
func (m *Model) Params() int {
	n := 0
	for _, f := range m.flats {
		for _, p := range f.Params {
			n += p.Len()
		}
	}
	return n
}

func rootParams(c Config) []shard.Param {
	return withBias(c,
		[]shard.Param{
			matrix("wte.weight", c.Vocab, c.Width),
			matrix("wpe.weight", c.Positions, c.Width),
			vector("ln_f.weight", c.Width),
		},
		vector("ln_f.bias", c.Width))
}

func blockParams(c Config, name string) []shard.Param {
	d, inner := c.Width, c.inner()
	return withBias(c,
		[]shard.Param{
			ln1W:  vector(name+".ln_1.weight", d),
			qkvW:  matrix(name+".attn.c_attn.weight", d, 3*d),
			attW:  matrix(name+".attn.c_proj.weight", d, d),
			ln2W:  vector(name+".ln_2.weight", d),
			fcW:   matrix(name+".mlp.c_fc.weight", d, inner),
			projW: matrix(name+".mlp.c_proj.weight", inner, d),
		},
		vector(name+".ln_1.bias", d),
		vector(name+".attn.c_attn.bias", 3*d),
		vector(name+".attn.c_proj.bias", d),
		vector(name+".ln_2.bias", d),
		vector(name+".mlp.c_fc.bias", inner),
		vector(name+".mlp.c_proj.bias", d))
}

func withBias(c Config, weights []shard.Param, biases ...shard.Param) []shard.Param {
	if !c.Bias {
		return weights
	}
	return append(weights, biases...)
}

func matrix(name string, in, out int) shard.Param {
	return shard.Param{Name: name, Shape: []int{in, out}}
}

func vector(name string, n int) shard.Param {
	return shard.Param{Name: name, Shape: []int{n}, NoDecay: true}
}
