package models

import (
	"zeroshard/device"
	"zeroshard/kernels"
	"zeroshard/prng"
	"zeroshard/shard"
)

// Mode says what a pass is for.
type Mode uint8

// The modes.
const (
	Train  Mode = iota // loss and gradients, dropout on
	Eval               // loss only
	Logits             // the last unit writes logits instead of a loss
	Decode             // Logits of texts that earlier calls began: only their next rows, the rest is in the units' caches
)

func (m Mode) String() string { return [...]string{"train", "eval", "logits", "decode"}[m] }

// Scores says that the last unit writes logits.
func (m Mode) Scores() bool { return m >= Logits }

// Shape is the shape of one leaf: Batch sequences of Seq tokens.
type Shape struct {
	Batch, Seq int
	Room       int // in mode Decode: tokens of a sequence that the caches have room for, at least Seq; else 0
}

// Rows is the number of tokens.
func (s Shape) Rows() int { return s.Batch * s.Seq }

// Sizes is what a unit needs for one leaf, in elements of the compute dtype (a unit that keeps fp32 values counts two elements
// for each in 16-bit training).
type Sizes struct {
	Out      int   // its output, the next unit's input; in modes Logits and Decode of the last unit: the logits
	Saved    int   // what backward wants of forward, beside In
	Work     int   // scratch of Forward
	BackWork int   // scratch of Backward
	Cache    int   // in mode Decode: what it keeps of a text from call to call
	Flops    int64 // floating-point operations of Forward (Backward counts double; the last unit's Train counts triple)
}

// Unit is a step of computation that reads flat parameters.
//
// The last unit of a model is its loss. In mode Train its Forward also writes DIn and its gradients (one pass, so that full logits
// never exist), and Backward is never called; in Eval it writes Loss alone; in Logits and Decode it writes Out: for each sequence the
// scores of what follows its last row with a target ≥ 0.
type Unit interface {
	Name() string
	// Reads names the FlatSpecs whose values Forward and Backward read. Forward's list is also the list of the gradients that
	// Backward writes, and must contain backward's.
	Reads() (forward, backward []string)
	Sizes(Shape, Mode) Sizes
	Forward(*Call) error
	Backward(*Call) error
}

// Call is everything that a unit may touch; a unit allocates nothing and keeps nothing.
type Call struct {
	S     device.Stream
	K     kernels.Net
	Key   prng.Key // of (seed, step, leaf, unit): dropout of site i uses Key.Sub(i)
	Shape Shape
	Mode  Mode

	// P and G have an entry for each parameter of the specs that Forward reads, in their order. In Backward the entries of specs
	// that it does not read are empty, as are G's of frozen parameters.
	P, G []device.Buffer
	// Add: other units write gradients of the same flats in this leaf, and G holds zeros or their part: add to it.
	// Otherwise G holds garbage: write every element.
	Add bool

	In, Out         device.Buffer // In is the previous unit's output, empty for the first; Out is empty when recomputing
	DIn, DOut       device.Buffer // DIn is written whole by Backward; empty for the first unit
	Saved, Work     device.Buffer
	Tokens, Targets device.Buffer // int32, Shape.Rows(); a target < 0 does not count
	Loss            device.Buffer // 2 fp64, zeroed: loss sum and valid targets; the last unit adds to it
	Scale           device.Buffer // 1 fp32: what the last unit multiplies its gradient by

	// In mode Decode. A sequence's rows continue its text, and rows of padding follow. Spans is int32 (Batch, 2): the place of its first row
	// in the text, and how many rows there are, 0 to Seq. Cache is what this unit wrote for the rows before, and adds these rows to; what it
	// holds for later places is garbage. The bits of a row are those of mode Logits, however a text is cut into calls.
	Spans, Cache device.Buffer
}

// Model is a list of units in the order of computation, and the parameters that they read.
type Model interface {
	Flats() []shard.FlatSpec
	Units() []Unit
}

// Decoder is a model whose units know mode Decode. Positions is the most tokens that a text can have.
type Decoder interface{ Positions() int }

// TokenChecker is a model that knows its vocabulary. CheckTokens reports the first token that it has not, with its place; targets below 0
// do not count. It is asked before a pass begins.
type TokenChecker interface {
	CheckTokens(tokens, targets []int32) error
}

// Initializer is a model that knows its initial values. Init fills dst with elements [lo, lo+len(dst)) of p: a pure function
// of (key, p, lo), so that a rank makes its own slice and nothing depends on the world.
type Initializer interface {
	Init(key prng.Key, p shard.Param, lo int, dst []float32)
}
