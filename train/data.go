package train

import (
	"fmt"

	"zeroshard/data"
	"zeroshard/prng"
	"zeroshard/zero"
)

// Corpus is Data cut from a set of files. Batches that it returns are theirs to keep.
type Corpus struct {
	train, held data.Sampler
	leaves      int
}

// NewCorpus cuts leaves of batch sequences of seq tokens. The order of the training data follows from seed, held-out leaves (so many
// in all) are spread evenly over the validation part.
func NewCorpus(set *data.Set, seed uint64, batch, seq, held int) *Corpus {
	return &Corpus{
		train:  data.Sampler{Key: prng.New(seed).Named("data"), Tokens: set.Train, Batch: batch, Seq: seq},
		held:   data.Sampler{Tokens: set.Val, Batch: batch, Seq: seq},
		leaves: held,
	}
}

// Train gives a leaf of a step.
func (c *Corpus) Train(step, leaf int) (zero.Batch, error) {
	b := c.batch()
	if err := c.train.Leaf(step, leaf, b.Tokens, b.Targets); err != nil {
		return b, fmt.Errorf("train: leaf %d of step %d: %w", leaf, step, err)
	}
	return b, nil
}

// Held gives a held-out leaf.
func (c *Corpus) Held(leaf int) (zero.Batch, error) {
	b := c.batch()
	if err := c.held.EvalLeaf(leaf, c.leaves, b.Tokens, b.Targets); err != nil {
		return b, fmt.Errorf("train: held-out leaf %d: %w", leaf, err)
	}
	return b, nil
}

func (c *Corpus) batch() zero.Batch {
	n := c.train.Batch * c.train.Seq
	return zero.Batch{Tokens: make([]int32, n), Targets: make([]int32, n)}
}
