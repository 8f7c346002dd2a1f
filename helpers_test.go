package zeroshard_test

import (
	"context"
	"strings"
	"testing"

	"zeroshard"
	"zeroshard/kernels"
	"zeroshard/models"
	"zeroshard/models/gpt"
	"zeroshard/optim"
	"zeroshard/prng"
	"zeroshard/shard"
	"zeroshard/zero"
)

var ctx = context.Background()

// preset is a GPT on 8 leaves of one sequence.
func preset(t testing.TB, name string) zeroshard.Config {
	t.Helper()
	cfg, err := gpt.Preset(name)
	if err != nil {
		t.Fatal(err)
	}
	m, err := gpt.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return zeroshard.Config{Model: m, Ranks: 2, GlobalBatch: 8, MicroBatch: 1, Seq: cfg.Positions, EvalLeaves: 3, Clip: 1, Seed: 7}
}

// micro is the smallest GPT, on short sequences.
func micro(t testing.TB) zeroshard.Config {
	c := preset(t, "micro")
	c.Seq = 8
	return c
}

// odd is a model of one unit, and no models.Initializer: logits of the next token are the token's row of table. Its other parameters
// have the shapes that break things; their gradients are made up.
type odd struct{ noLogits bool }

const oddVocab = 11

func (odd) Flats() []shard.FlatSpec {
	return []shard.FlatSpec{
		{Name: "table", Params: []shard.Param{{Name: "table", Shape: []int{oddVocab, oddVocab}}}},
		{Name: "extras", Params: []shard.Param{
			{Name: "prime", Shape: []int{257}, NoDecay: true},
			{Name: "scalar", Shape: []int{}},
			{Name: "none", Shape: []int{0, 3}},
			{Name: "fixed", Shape: []int{5, 3}, Frozen: true},
			{Name: "cube", Shape: []int{3, 4, 5}},
			{Name: "one", Shape: []int{1}},
		}},
	}
}

func (m odd) Units() []models.Unit { return []models.Unit{oddUnit{m}} }

type oddUnit struct{ odd }

func (oddUnit) Name() string                        { return "loss" }
func (oddUnit) Reads() (forward, backward []string) { return []string{"table", "extras"}, nil }

func (u oddUnit) Sizes(s models.Shape, m models.Mode) (z models.Sizes) {
	z.Work = s.Rows() * oddVocab
	if m == models.Logits && !u.noLogits {
		z.Out = s.Batch * oddVocab
	}
	return z
}

func (u oddUnit) Forward(c *models.Call) error {
	c.K.Embed(c.S, kernels.Embed{Out: c.Work, Table: c.P[0], Tokens: c.Tokens, Batch: c.Shape.Batch, Seq: c.Shape.Seq, Dim: oddVocab})
	if c.Mode == models.Logits {
		if c.Out.Len > 0 {
			c.K.PickRows(c.S, c.Out, c.Work, c.Targets, c.Shape.Seq, oddVocab)
		}
		return nil
	}
	c.K.CrossEntropy(c.S, kernels.CrossEntropy{Logits: c.Work, Targets: c.Targets, Loss: c.Loss, Scale: c.Scale, Rows: c.Shape.Rows(),
		Vocab: oddVocab, Grad: c.Mode == models.Train})
	if c.Mode == models.Eval {
		return nil
	}
	for i, g := range c.G {
		for j := range g.Float32s() {
			g.Float32s()[j] = 0
			if i > 0 {
				g.Float32s()[j] = 1 / float32(i+j)
			}
		}
	}
	c.K.EmbedBackward(c.S, kernels.Embed{Out: c.Work, Table: c.G[0], Tokens: c.Tokens, Batch: c.Shape.Batch, Seq: c.Shape.Seq, Dim: oddVocab})
	return nil
}

func (oddUnit) Backward(*models.Call) error { panic("the last unit has no backward") }

// oddJob trains an odd model.
func oddJob(stage, ranks int) zeroshard.Config {
	return zeroshard.Config{Model: odd{}, Ranks: ranks, Stage: stage, GlobalBatch: 4, MicroBatch: 1, Seq: 6, Clip: 1}
}

// local makes a cluster that ends with the test.
func local(t testing.TB, c zeroshard.Config, options ...zeroshard.Option) *zeroshard.Cluster {
	t.Helper()
	cl, err := zeroshard.Local(ctx, c, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cl.Close(); err != nil {
			t.Error(err)
		}
	})
	return cl
}

// vocab is how many tokens a config's model knows.
func vocab(c zeroshard.Config) int {
	if m, ok := c.Model.(*gpt.Model); ok {
		return m.Config().Vocab
	}
	return oddVocab
}

// batch makes a micro-batch: a pure function of its number and the step. Some targets do not count.
func batch(c zeroshard.Config, step, leaf int) zero.Batch {
	k := prng.New(3).Sub(uint64(step)).Sub(uint64(leaf))
	n := c.MicroBatch * c.Seq
	b := zero.Batch{Tokens: make([]int32, n), Targets: make([]int32, n)}
	for i := range n {
		b.Tokens[i] = int32(k.Intn(uint64(2*i), vocab(c)))
		b.Targets[i] = int32(k.Intn(uint64(2*i+1), vocab(c)))
		if i > 0 && i%(4+leaf) == 0 {
			b.Targets[i] = -1
		}
	}
	return b
}

func leaves(c zeroshard.Config, step int) func(int) (zero.Batch, error) {
	return func(leaf int) (zero.Batch, error) { return batch(c, step, leaf), nil }
}

func hyper(step int) optim.Hyper { return optim.Hyper{Step: step, LR: 0.01} }

// steps trains steps [from, to].
func steps(t testing.TB, cl *zeroshard.Cluster, c zeroshard.Config, from, to int) {
	t.Helper()
	for step := from; step <= to; step++ {
		st, err := cl.Step(ctx, leaves(c, step), hyper(step))
		if err != nil {
			t.Fatal(err)
		}
		if st.Skipped != nil {
			t.Fatalf("step %d skipped: %+v", step, *st.Skipped)
		}
	}
}

func hash(t testing.TB, cl *zeroshard.Cluster) string {
	t.Helper()
	h, err := cl.StateSHA256(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// lines splits an error's text.
func lines(err error) []string {
	if err == nil {
		return nil
	}
	return strings.Split(err.Error(), "\n")
}
