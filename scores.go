package zeroshard

import (
	"context"
	"fmt"

	"zeroshard/models"
	"zeroshard/zero"
)

// Logits returns the scores of the token that follows tokens: at least one and at most Seq of them, else the error is zero.ErrBatch. The
// slice is good until the next call. It is Scores of one text.
func (c *Cluster) Logits(ctx context.Context, tokens []int32) ([]float32, error) {
	if err := c.scorable(ctx, "Logits"); err != nil {
		return nil, err
	}
	if n := len(tokens); n < 1 || n > c.config.Seq {
		return nil, fmt.Errorf("%w: %d tokens: between 1 and %d are needed", zero.ErrBatch, len(tokens), c.config.Seq)
	}
	rows, err := c.scores(ctx, [][]int32{tokens})
	if err != nil {
		return nil, err
	}
	return rows[0], nil
}

// Scores returns for each text the scores of the token that follows it, and nil for an empty one. There may be Config.Texts texts, of at most
// Seq tokens each, else the error is zero.ErrBatch. The slices are good until the next call.
//
// Texts are given whole. Where the model is a models.Decoder, what a text has in common with the text of the same index in the call before,
// its beginning, is not computed again, unless another method was called in between; after Piece nothing is remembered, as its views can be
// written to. Bits: unchanged.
func (c *Cluster) Scores(ctx context.Context, texts [][]int32) ([][]float32, error) {
	if err := c.scorable(ctx, "Scores"); err != nil {
		return nil, err
	}
	return c.scores(ctx, texts)
}

func (c *Cluster) scores(ctx context.Context, texts [][]int32) ([][]float32, error) {
	if len(texts) > c.config.Texts {
		return nil, fmt.Errorf("%w: %d texts, the cluster was made for %d (Config.Texts)", zero.ErrBatch, len(texts), c.config.Texts)
	}
	for i, t := range texts {
		if n := c.config.Seq; len(t) > n {
			return nil, fmt.Errorf("%w: text %d has %d tokens: at most %d fit", zero.ErrBatch, i, len(t), n)
		}
		if err := c.checkTokens(zero.Batch{Tokens: t}); err != nil {
			return nil, err
		}
	}
	if c.program.Next == nil {
		return c.whole(ctx, texts)
	}
	return c.goOn(ctx, texts)
}

// scorable is ready for the method called name, and whether the model gives scores.
func (c *Cluster) scorable(ctx context.Context, name string) error {
	if err := c.ready(ctx, name, true); err != nil {
		return err
	}
	units := c.config.Model.Units()
	if last := units[len(units)-1]; last.Sizes(models.Shape{Batch: 1, Seq: c.config.Seq}, models.Logits).Out == 0 {
		return fmt.Errorf("%w: the model's last unit, %s, gives no logits", zero.ErrOptions, last.Name())
	}
	return nil
}

// whole computes each text from its first token on, one after the other.
func (c *Cluster) whole(ctx context.Context, texts [][]int32) ([][]float32, error) {
	out := make([][]float32, len(texts))
	for i, t := range texts {
		if len(t) == 0 {
			continue
		}
		logits, err := c.first(func(rk *rank) ([]float32, error) { return rk.engine.Logits(ctx, t) })
		if err != nil {
			return nil, err
		}
		out[i] = append([]float32(nil), logits...)
	}
	return out, nil
}

// goOn computes what the caches do not hold.
func (c *Cluster) goOn(ctx context.Context, texts [][]int32) ([][]float32, error) {
	if c.cached == nil || c.viewed {
		c.cached = make([][]int32, c.config.Texts)
	}
	next, any := make([]zero.Text, c.config.Texts), false
	for i, t := range texts {
		if len(t) > 0 {
			at := min(common(c.cached[i], t), len(t)-1)
			next[i], any = zero.Text{At: at, Tokens: t[at:]}, true
			c.cached[i] = append(c.cached[i][:at], t[at:]...)
		}
	}
	out := make([][]float32, len(texts))
	if !any {
		return out, nil
	}
	logits, err := c.first(func(rk *rank) ([]float32, error) { return rk.engine.Decode(ctx, next) })
	if err != nil {
		return nil, err
	}
	n := len(logits) / len(next)
	for i, t := range texts {
		if len(t) > 0 {
			out[i] = logits[i*n : (i+1)*n]
		}
	}
	return out, nil
}

// common is the number of tokens with which both texts begin.
func common(a, b []int32) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// first runs f on all ranks and returns what rank 0 got.
func (c *Cluster) first(f func(rk *rank) ([]float32, error)) ([]float32, error) {
	got := make([][]float32, len(c.ranks))
	err := c.each(func(r int, rk *rank) (err error) {
		got[r], err = f(rk)
		return err
	})
	return got[0], err
}
