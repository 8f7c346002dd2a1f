package gpt

import (
	"errors"
	"fmt"

	"zeroshard/models"
)

// Config describes a model. Its JSON is what a checkpoint keeps of it.
type Config struct {
	Layers    int     `json:"layers"`
	Heads     int     `json:"heads"`     // of each block; divides Width
	Width     int     `json:"width"`     // d, elements of a token's vector
	Vocab     int     `json:"vocab"`     // rows of the embedding
	Positions int     `json:"positions"` // longest sequence
	Inner     int     `json:"inner"`     // width of the MLP's hidden layer; 0 = 4·Width
	Bias      bool    `json:"bias"`      // biases in norms and linear layers, as GPT-2 has
	Dropout   float32 `json:"dropout"`   // of embedding, attention and both residual branches, in Train; Bits: changed
	Eps       float32 `json:"eps"`       // of the norms; 0 = 1e-5
}

// limit bounds widths and counts, so that a product of two of them and a small factor is in an int64's range.
const limit = 1 << 30

// inner is Inner with its default.
func (c Config) inner() int {
	if c.Inner == 0 {
		return 4 * c.Width
	}
	return c.Inner
}

// eps is Eps with its default.
func (c Config) eps() float32 {
	if c.Eps == 0 {
		return 1e-5
	}
	return c.Eps
}

// Validate returns all faults at once, each wrapping ErrConfig.
func (c Config) Validate() error {
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w: "+format, append([]any{ErrConfig}, args...)...))
	}
	for _, f := range []struct {
		name  string
		value int
	}{{"layers", c.Layers}, {"heads", c.Heads}, {"width", c.Width}, {"vocabulary", c.Vocab}, {"positions", c.Positions}, {"inner width", c.inner()}} {
		if f.value < 1 || f.value > limit {
			bad("%s is %d, must be 1 to %d", f.name, f.value, limit)
		}
	}
	if c.Heads > 0 && c.Width > 0 && c.Width%c.Heads != 0 {
		bad("width %d is not a multiple of %d heads", c.Width, c.Heads)
	}
	if !(c.Dropout >= 0 && c.Dropout < 1) {
		bad("dropout is %v, must be at least 0 and under 1", c.Dropout)
	}
	if !(c.eps() > 0 && c.eps() < 1) {
		bad("eps is %v, must be over 0 and under 1", c.Eps)
	}
	return errors.Join(errs...)
}

// CheckShape says whether the model can take leaves of this shape (ErrShape).
func (c Config) CheckShape(s models.Shape) error {
	switch {
	case s.Batch < 1 || s.Seq < 1:
		return fmt.Errorf("%w: %d sequences of %d tokens", ErrShape, s.Batch, s.Seq)
	case s.Seq > c.Positions:
		return fmt.Errorf("%w: sequences of %d tokens, the model has %d positions", ErrShape, s.Seq, c.Positions)
	case s.Room > c.Positions || s.Room != 0 && s.Room < s.Seq:
		return fmt.Errorf("%w: room for %d tokens, must be at least a call's %d and at most the model's %d positions", ErrShape, s.Room, s.Seq, c.Positions)
	case s.Batch > limit/max(s.Seq, s.Room):
		return fmt.Errorf("%w: %d sequences of %d tokens are more than %d tokens", ErrShape, s.Batch, s.Seq, limit)
	}
	return nil
}
