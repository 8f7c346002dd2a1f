package zero

import (
	"context"
	"fmt"
	"slices"
)

// Text is what one call of Decode adds to a text: Tokens from place At on. Earlier calls have given the tokens before. A text without
// Tokens stays as it is.
type Text struct {
	At     int
	Tokens []int32
}

// Logits computes the logits that follow the last of tokens, at least one and at most Seq of them, for a model that is no models.Decoder; for
// one that is, Decode does. Every rank must call it; rank 0 alone gets them, the others nil. The slice is good until the next call.
func (e *Engine) Logits(ctx context.Context, tokens []int32) ([]float32, error) {
	if e.next != nil {
		return nil, fmt.Errorf("%w: the model goes on with texts: it is a models.Decoder, use Decode", ErrOptions)
	}
	x := e.logits
	rows := x.p.Options.Shape.Rows()
	if len(tokens) == 0 || len(tokens) > rows {
		return nil, fmt.Errorf("%w: %d tokens: between 1 and %d are needed", ErrBatch, len(tokens), rows)
	}
	b := Batch{Tokens: make([]int32, rows), Targets: slices.Repeat([]int32{-1}, rows)}
	copy(b.Tokens, tokens)
	b.Targets[len(tokens)-1] = 0
	return x.scores(ctx, b)
}

func (x *exec) scores(ctx context.Context, b Batch) ([]float32, error) {
	if err := x.load(ctx, []Batch{b}); err != nil {
		return nil, err
	}
	if err := x.issue(); err != nil {
		return nil, err
	}
	if x.leaves[0] == none {
		return nil, nil
	}
	return x.host32, nil
}

// Decode adds tokens to as many texts as the program was compiled for (Options.Texts) and computes the logits that follow each, one row a text;
// the row of a text without tokens means nothing. The model must be a models.Decoder. Every rank must call it with the same texts; rank 0 alone gets the logits, the others nil. The
// slice is good until the next call.
//
// The tokens before At are in the caches, which every other pass, and every read or write of state, overwrites: then texts start again at 0.
// Bits: the same however the text is cut into calls.
func (e *Engine) Decode(ctx context.Context, texts []Text) ([]float32, error) {
	if err := e.checkTexts(texts); err != nil {
		return nil, err
	}
	most := 0
	for _, t := range texts {
		most = max(most, len(t.Tokens))
	}
	x := e.logits
	if most <= 1 {
		x = e.next
	}
	rows := x.p.Options.Shape.Seq
	var logits []float32
	for part := max(0, (most-1)/rows); part >= 0; part-- {
		var err error
		if logits, err = x.scores(ctx, x.part(texts, part)); err != nil {
			return nil, err
		}
	}
	for i, t := range texts {
		if len(t.Tokens) > 0 {
			e.held[i] = t.At + len(t.Tokens)
		}
	}
	return logits, nil
}

// part is a call's share of texts: parts are counted from the end, so that all texts end in part 0, whose logits count.
func (x *exec) part(texts []Text, part int) Batch {
	shape := x.p.Options.Shape
	b := Batch{Tokens: make([]int32, shape.Rows()), Targets: slices.Repeat([]int32{-1}, shape.Rows())}
	x.run.spans = x.run.spans[:0]
	for i, t := range texts {
		lo, hi := max(0, len(t.Tokens)-(part+1)*shape.Seq), max(0, len(t.Tokens)-part*shape.Seq)
		copy(b.Tokens[i*shape.Seq:], t.Tokens[lo:hi])
		if n := hi - lo; n > 0 {
			b.Targets[i*shape.Seq+n-1] = 0
		}
		x.run.spans = append(x.run.spans, int32(t.At+lo), int32(hi-lo))
	}
	return b
}

func (e *Engine) checkTexts(texts []Text) error {
	if e.next == nil {
		return fmt.Errorf("%w: the model computes texts whole: it is no models.Decoder, use Logits", ErrOptions)
	}
	shape := e.next.p.Options.Shape
	if len(texts) != shape.Batch {
		return fmt.Errorf("%w: %d texts, the program continues %d", ErrBatch, len(texts), shape.Batch)
	}
	if len(e.held) != len(texts) {
		e.held = make([]int, len(texts))
	}
	for i, t := range texts {
		switch {
		case t.At < 0 || t.At+len(t.Tokens) > shape.Room:
			return fmt.Errorf("%w: text %d: %d tokens after %d, there is room for %d", ErrBatch, i, len(t.Tokens), t.At, shape.Room)
		case len(t.Tokens) > 0 && t.At > e.held[i]:
			return fmt.Errorf("%w: text %d goes on at %d, its cache holds %d tokens", ErrBatch, i, t.At, e.held[i])
		}
	}
	return nil
}

// forget says that the caches hold nothing any more: their bytes, or the parameters, are others now.
func (e *Engine) forget() { clear(e.held) }
