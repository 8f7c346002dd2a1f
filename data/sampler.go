package data

import (
	"fmt"

	"zeroshard/prng"
)

// Sampler cuts leaves out of a token sequence. It keeps no position: what a leaf holds follows from its number alone, so neither
// rank, world, stage nor a resume changes it.
type Sampler struct {
	Key        prng.Key // of the run's seed and of this use
	Tokens     Tokens   // at least Seq+1
	Batch, Seq int      // sequences of a leaf, tokens of a sequence
}

// Leaf fills tokens and targets (Batch·Seq each, row by row) for a leaf of a training step. Sequence b starts at
//
//	Key.Sub(step).Sub(leaf).Intn(b, Tokens.Len()−Seq)
//
// drawn with replacement, and targets are the tokens one further on. leaf counts from 0 in the global batch.
func (s *Sampler) Leaf(step, leaf int, tokens, targets []int32) error {
	n, err := s.starts(tokens, targets)
	if err != nil {
		return err
	}
	key := s.Key.Sub(uint64(step)).Sub(uint64(leaf))
	for b := range s.Batch {
		if err := s.window(b, key.Intn(uint64(b), n), tokens, targets); err != nil {
			return err
		}
	}
	return nil
}

// EvalLeaf fills tokens and targets for leaf i of n: Batch of n·Batch windows that are spread evenly over all tokens, the first
// at the start and the last at the end. They overlap only where the tokens do not suffice for all. Nothing is random.
func (s *Sampler) EvalLeaf(i, n int, tokens, targets []int32) error {
	starts, err := s.starts(tokens, targets)
	if err != nil {
		return err
	}
	if i < 0 || i >= n {
		return fmt.Errorf("%w: evaluation leaf %d of %d", ErrRange, i, n)
	}
	for b := range s.Batch {
		if err := s.window(b, spread(i*s.Batch+b, n*s.Batch, starts), tokens, targets); err != nil {
			return err
		}
	}
	return nil
}

// spread is the w-th of n places in [0, starts), the first and the last included: ⌊w(starts−1)/(n−1)⌋, without the product, which
// could overflow.
func spread(w, n, starts int) int {
	if n == 1 {
		return 0
	}
	last, gaps := starts-1, n-1
	return w*(last/gaps) + w*(last%gaps)/gaps
}

// starts is the number of places where a window can start.
func (s *Sampler) starts(tokens, targets []int32) (int, error) {
	if want := s.Batch * s.Seq; len(tokens) != want || len(targets) != want {
		return 0, fmt.Errorf("%w: a leaf of %d sequences of %d into %d tokens and %d targets", ErrRange, s.Batch, s.Seq, len(tokens), len(targets))
	}
	n := s.Tokens.Len() - s.Seq
	if n < 1 {
		return 0, fmt.Errorf("%w: sequences of %d need %d tokens, there are %d", ErrRange, s.Seq, s.Seq+1, s.Tokens.Len())
	}
	return n, nil
}

// window reads Seq+1 tokens from at on into row b of both.
func (s *Sampler) window(b, at int, tokens, targets []int32) error {
	x, y := tokens[b*s.Seq:(b+1)*s.Seq], targets[b*s.Seq:(b+1)*s.Seq]
	if err := s.Tokens.Read(at+1, y); err != nil || s.Seq == 0 {
		return err
	}
	copy(x[1:], y)
	return s.Tokens.Read(at, x[:1])
}
