package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"zeroshard"
	"zeroshard/data/tokenizer"
	"zeroshard/train"
	"zeroshard/zero"
)

// evaluation is one call of eval.
type evaluation struct {
	inference
	data                       fileList
	seq, microBatch, maxTokens int
	words                      tokenizer.Tokenizer // nil where nobody knows what the tokens are
	texts                      *texts
	windows                    []window
	sum                        zero.Loss
	bytes                      int64
}

// window is Seq tokens of a file, and those that follow each.
type window struct{ file, at, n int }

// measured is what eval prints.
type measured struct {
	Loss        train.Number  `json:"loss"` // nats a token
	Perplexity  train.Number  `json:"perplexity"`
	BitsPerByte *train.Number `json:"bits_per_byte,omitempty"`
	Tokens      int           `json:"tokens"` // predicted
	Bytes       int64         `json:"bytes,omitempty"`
	Windows     int           `json:"windows"`
	Seq         int           `json:"seq"`
}

// evalLeaves is the micro-batches of one pass. It does not depend on the ranks, so that sums are added in one order.
const evalLeaves = 8

func newEval() *cobra.Command {
	e := &evaluation{}
	c := &cobra.Command{
		Use:   "eval",
		Short: "Measure a model's loss on files",
		Long: "eval computes the loss of a checkpoint, or of a Hugging Face folder, on files: cut into windows of --seq tokens that do not overlap, each\n" +
			"token is predicted from those before it in its window. A text is cut into tokens by the model's tokenizer, a .bin file is read as it is, a folder\n" +
			"stands for its val.bin. Bits a byte, which can be compared between vocabularies, are given where it is known what the tokens are.",
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			sig := watch(io.Discard)
			defer sig.close()
			defer e.close()
			defer func() { e.texts.close() }()
			if err := e.judge(c); err != nil {
				return err
			}
			if err := e.main(context.Background(), sig.stop); err != nil {
				return err
			}
			if err := sig.err(); err != nil {
				return err
			}
			return e.print()
		},
	}
	f := c.Flags()
	f.SortFlags = false
	c.SetHelpFunc(flagHelp)
	f.Var(&e.data, "data", "`FILES` to measure on: text, or .bin of nanoGPT or llm.c, or a folder with a val.bin")
	f.IntVar(&e.seq, "seq", 0, "tokens (`N`) of a window; 0: the model's positions")
	f.IntVar(&e.microBatch, "micro-batch", 4, "windows (`N`) that pass the model together")
	f.IntVar(&e.maxTokens, "max-tokens", 0, "predict the first `N` tokens only; 0: all")
	e.flags(f)
	return c
}

// judge refuses what cannot be, and opens model and files.
func (e *evaluation) judge(c *cobra.Command) error {
	var f faults
	f.check(len(e.data) > 0 && !slices.Contains(e.data, ""), "--data is needed: the files to measure on")
	f.check(e.seq >= 0, "--seq %d: use 1 or more tokens, or 0 for the model's positions", e.seq)
	f.check(e.microBatch >= 1 && e.microBatch <= maxBatch, "--micro-batch %d: use 1 to %d", e.microBatch, maxBatch)
	f.check(e.maxTokens >= 0, "--max-tokens %d: use 1 or more, or 0 for all", e.maxTokens)
	e.inference.judge(&f)
	if err := f.err(); err != nil {
		return err
	}
	if err := e.open(c); err != nil {
		return err
	}
	most := e.source.config.Positions
	if e.seq == 0 {
		e.seq = most
	}
	if e.seq > most {
		return usagef("--seq %d: the model of %s has %d positions, use 1 to %d", e.seq, e.from, most, most)
	}
	words, unknown := e.source.words(e.tokenizer)
	if unknown != nil && e.tokenizer != "" {
		return unknown
	}
	e.words = words
	var err error
	if e.texts, err = openTexts(e.data, e.source.config.Vocab, e.words, e.maxTokens); err != nil {
		return err
	}
	if e.texts.plain && e.words == nil {
		return unknown
	}
	if unknown != nil && e.source.records() {
		fmt.Fprintf(e.stderr, "note       bits a byte are not counted: %v\n", unknown)
	}
	return e.cut()
}

// cut cuts each file into windows.
func (e *evaluation) cut() error {
	left := math.MaxInt
	if e.maxTokens > 0 {
		left = e.maxTokens
	}
	for i, t := range e.texts.tokens {
		for at := 0; at+1 < t.Len() && left > 0; at += e.seq {
			n := min(e.seq, t.Len()-1-at, left)
			e.windows, left = append(e.windows, window{i, at, n}), left-n
		}
	}
	if len(e.windows) == 0 {
		return usagef("--data %v: no file has two tokens, so there is nothing to predict", e.data)
	}
	return nil
}

// main adds up the loss of all windows.
func (e *evaluation) main(ctx context.Context, stop <-chan struct{}) error {
	e.microBatch = min(e.microBatch, len(e.windows))
	if err := e.start(ctx, zeroshard.Config{Seq: e.seq, MicroBatch: e.microBatch, EvalLeaves: evalLeaves}); err != nil {
		return err
	}
	began := time.Now()
	for first := 0; first < len(e.windows); first += evalLeaves * e.microBatch {
		select {
		case <-stop:
			return nil
		default:
		}
		l, err := e.cluster.Eval(ctx, func(leaf int) (zero.Batch, error) { return e.leaf(first + leaf*e.microBatch) })
		if err != nil {
			return err
		}
		if l.Sum-l.Sum != 0 {
			last := min(first+evalLeaves*e.microBatch, len(e.windows)) - 1
			return fmt.Errorf("the loss of windows %d to %d is not finite%s", first+1, last+1, e.source.notFinite())
		}
		e.sum.Sum += l.Sum
		e.sum.Tokens += l.Tokens
	}
	if err := e.count(); err != nil {
		return err
	}
	e.told("eval", e.sum.Tokens, time.Since(began))
	return nil
}

// leaf is the windows from first on; where there are none left, and behind a short one, no target counts.
func (e *evaluation) leaf(first int) (zero.Batch, error) {
	rows := e.microBatch * e.seq
	b := zero.Batch{Tokens: make([]int32, rows), Targets: slices.Repeat([]int32{-1}, rows)}
	ids := make([]int32, e.seq+1)
	for i := range e.microBatch {
		if first+i >= len(e.windows) {
			break
		}
		w := e.windows[first+i]
		if err := e.texts.tokens[w.file].Read(w.at, ids[:w.n+1]); err != nil {
			return b, err
		}
		copy(b.Tokens[i*e.seq:], ids[:w.n])
		copy(b.Targets[i*e.seq:], ids[1:w.n+1])
	}
	return b, nil
}

// count adds up the bytes of the tokens that were predicted; an end of text has none. With a token that stands for nothing there is no sum.
func (e *evaluation) count() error {
	if e.words == nil {
		return nil
	}
	end, ends := e.words.EndOfText()
	ids := make([]int32, e.seq)
	for _, w := range e.windows {
		if err := e.texts.tokens[w.file].Read(w.at+1, ids[:w.n]); err != nil {
			return err
		}
		for _, id := range ids[:w.n] {
			if ends && id == end {
				continue
			}
			token, err := e.words.Token(id)
			if err != nil {
				e.bytes = 0
				return nil
			}
			e.bytes += int64(len(token))
		}
	}
	return nil
}

func (e *evaluation) print() error {
	m := measured{Loss: train.Number(e.sum.Mean()), Perplexity: train.Number(math.Exp(e.sum.Mean())), Tokens: e.sum.Tokens, Bytes: e.bytes,
		Windows: len(e.windows), Seq: e.seq}
	if e.bytes > 0 {
		bits := train.Number(e.sum.Sum / math.Ln2 / float64(e.bytes))
		m.BitsPerByte = &bits
	}
	if e.json {
		return json.NewEncoder(e.stdout).Encode(m)
	}
	fmt.Fprintf(e.stdout, "loss       %.6f nats a token\nperplexity %.4f\n", float64(m.Loss), float64(m.Perplexity))
	if m.BitsPerByte != nil {
		fmt.Fprintf(e.stdout, "bits/byte  %.6f\n", float64(*m.BitsPerByte))
	}
	_, err := fmt.Fprintf(e.stdout, "tokens     %s predicted, in %s windows of %d\n", train.Thousands(int64(m.Tokens)), train.Thousands(int64(m.Windows)), m.Seq)
	return err
}
