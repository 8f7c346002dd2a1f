package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"zeroshard"
	"zeroshard/data/tokenizer"
	"zeroshard/train"
)

// generation is one call of generate.
type generation struct {
	inference
	prompts    []string
	promptFile string
	sampling   train.Sampling
	batch      int

	words tokenizer.Tokenizer
	ids   [][]int32 // of the prompts
}

func newGenerate() *cobra.Command {
	g := &generation{}
	c := &cobra.Command{
		Use:   "generate",
		Short: "Let a model continue texts",
		Long: "generate lets the model of a checkpoint, or of a Hugging Face folder, continue prompts. The texts go to standard output as they come, as valid\n" +
			"UTF-8, each after its prompt; with several, a line of dashes stands between them. A text ends after --max-tokens tokens or where the model\n" +
			"ends it. What is drawn for a prompt follows from the seed and the prompt, whatever is drawn beside it; where a prompt is given again, also\n" +
			"from how often it was before. Where a text is longer than the model's positions, the model sees its end: when they are full, the older\n" +
			"half is forgotten.",
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			sig := watch(io.Discard)
			defer sig.close()
			defer g.close()
			if err := g.judge(c); err != nil {
				return err
			}
			if err := g.main(context.Background(), sig.stop); err != nil {
				return err
			}
			return sig.err()
		},
	}
	f := c.Flags()
	f.SortFlags = false
	c.SetHelpFunc(flagHelp)
	f.StringArrayVar(&g.prompts, "prompt", nil, "`TEXT` to continue; may be given several times. An empty one is the start of a document")
	f.StringVar(&g.promptFile, "prompt-file", "", "`FILE` with a prompt a line; - is standard input")
	f.IntVar(&g.sampling.Tokens, "max-tokens", 200, "tokens (`N`) to draw for each prompt, at most")
	f.Float64Var(&g.sampling.Temperature, "temperature", 0.8, "logits are divided by this `NUMBER`; 0 takes the best token each time")
	f.IntVar(&g.sampling.TopK, "top-k", 40, "draw from the best `N` tokens only; 0: from all")
	f.Float64Var(&g.sampling.TopP, "top-p", 1, "of those, draw from the best that together have this `PROBABILITY`")
	f.Uint64Var(&g.sampling.Seed, "seed", 1337, "what is drawn follows from this `NUMBER`")
	f.IntVar(&g.batch, "batch", 8, "prompts (`N`) that are continued side by side."+unchanged)
	g.flags(f)
	return c
}

// judge refuses what cannot be, and turns prompts into tokens.
func (g *generation) judge(c *cobra.Command) error {
	var f faults
	s := &g.sampling
	f.check(s.Tokens >= 1 && s.Tokens <= maxDrawn, "--max-tokens %d: use 1 to %d", s.Tokens, maxDrawn)
	f.check(s.Temperature >= 0 && !math.IsInf(s.Temperature, 0), "--temperature %v: use a number above 0, or 0 for the best token", s.Temperature)
	f.check(s.TopK >= 0, "--top-k %d: use 1 or more, or 0 for all tokens", s.TopK)
	f.check(s.TopP > 0 && s.TopP <= 1, "--top-p %v: use a probability above 0, up to 1", s.TopP)
	f.check(g.batch >= 1 && g.batch <= maxBatch, "--batch %d: use 1 to %d", g.batch, maxBatch)
	f.check(len(g.prompts) > 0 || g.promptFile != "", "--prompt TEXT or --prompt-file FILE is needed")
	g.inference.judge(&f)
	if err := f.err(); err != nil {
		return err
	}
	if err := g.open(c); err != nil {
		return err
	}
	var err error
	if g.words, err = g.source.words(g.tokenizer); err != nil {
		return err
	}
	if err := g.readPrompts(c.InOrStdin()); err != nil {
		return err
	}
	return g.encode()
}

// Bounds of what is taken at its word.
const (
	maxDrawn = 1 << 30
	maxBatch = 1 << 12
)

func (g *generation) readPrompts(stdin io.Reader) error {
	if g.promptFile == "" {
		return nil
	}
	in := stdin
	if g.promptFile != "-" {
		f, err := os.Open(g.promptFile)
		if err != nil {
			return err
		}
		defer f.Close()
		in = f
	}
	r := bufio.NewReader(in)
	for {
		line, err := r.ReadString('\n')
		if line != "" {
			g.prompts = append(g.prompts, strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r"))
		}
		switch {
		case errors.Is(err, io.EOF) && len(g.prompts) == 0:
			return usagef("--prompt-file %s holds no prompt", g.promptFile)
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("--prompt-file %s: %w", g.promptFile, err)
		}
	}
}

func (g *generation) encode() error {
	end, ends := g.source.end(g.words)
	if ends {
		g.sampling.End = &end
	}
	for i, p := range g.prompts {
		ids := g.words.Encode(nil, p)
		if len(ids) == 0 {
			if !ends {
				return usagef("prompt %d is empty, and the tokenizer %s has no token that starts a document: give a text", i+1, g.words.Name())
			}
			ids = []int32{end}
		}
		g.ids = append(g.ids, ids)
	}
	return nil
}

// main continues the prompts, batch by batch.
func (g *generation) main(ctx context.Context, stop <-chan struct{}) error {
	s := &g.sampling
	longest := 0
	for _, ids := range g.ids {
		longest = max(longest, len(ids))
	}
	s.Stop, s.Context = stop, min(g.source.config.Positions, longest+s.Tokens)
	if longest > s.Context {
		fmt.Fprintf(g.stderr, "note       a prompt of %d tokens is longer than the model's %d positions: it sees the end\n", longest, s.Context)
	}
	batch := min(g.batch, len(g.ids))
	if err := g.start(ctx, zeroshard.Config{Seq: s.Context, Texts: batch}); err != nil {
		return err
	}
	copies, scorer := train.Copies(g.ids), known{g.cluster, g.words.Vocab(), s.End}
	s.End = scorer.last()
	began, tokens := time.Now(), 0
	for lo := 0; lo < len(g.ids); lo += batch {
		hi := min(lo+batch, len(g.ids))
		s.Copies = copies[lo:hi]
		t := newTeller(g, lo, hi)
		if err := t.begin(); err != nil {
			return err
		}
		err := train.Generate(ctx, scorer, g.ids[lo:hi], *s, func(d train.Drawn) error {
			tokens++
			return t.hear(d)
		})
		if err = errors.Join(err, t.end()); err != nil {
			return g.explain(err, lo)
		}
	}
	g.told("generate", tokens, time.Since(began))
	return nil
}

// explain names the weights that are to blame for logits that are not finite.
func (g *generation) explain(err error, first int) error {
	var at *train.LogitsError
	if !errors.As(err, &at) {
		return err
	}
	return fmt.Errorf("prompt %d: %w%s", first+at.Prompt+1, err, g.source.notFinite())
}

// known scores only what the tokenizer knows, as a model's vocabulary may be padded, and the end of a text.
type known struct {
	*zeroshard.Cluster
	vocab int
	end   *int32 // to the model; nil: none
}

// last is the id under which the end of a text is scored: where the tokenizer does not know it, the one after those that it knows.
func (k known) last() *int32 {
	if k.end == nil {
		return nil
	}
	id := min(*k.end, int32(k.vocab))
	return &id
}

func (k known) Scores(ctx context.Context, texts [][]int32) ([][]float32, error) {
	rows, err := k.Cluster.Scores(ctx, texts)
	for i, row := range rows {
		n := min(k.vocab, len(row))
		if k.end != nil && k.vocab <= int(*k.end) && int(*k.end) < len(row) {
			row[n] = row[*k.end]
			n++
		}
		rows[i] = row[:n]
	}
	return rows, err
}
