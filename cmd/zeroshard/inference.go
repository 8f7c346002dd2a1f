package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"zeroshard"
	"zeroshard/memory"
	"zeroshard/models/gpt"
	"zeroshard/zero"
)

// inference is what generate and eval share: a model that is not trained, and the ranks that hold it.
type inference struct {
	from, tokenizer       string
	ranks, stage, threads int
	json, quiet           bool

	source         *source
	cluster        *zeroshard.Cluster
	stdout, stderr io.Writer // results; what is told of them
}

func (n *inference) flags(f *pflag.FlagSet) {
	f.StringVar(&n.from, "from", "", "where the weights are (`DIR`): a run's folder, a step of it, or a folder of Hugging Face's")
	f.StringVar(&n.tokenizer, "tokenizer", "", "what the tokens are (`NAME|DIR`): bytes, gpt2, or a folder with vocab.json and merges.txt; without, what --from says")
	f.IntVar(&n.ranks, "ranks", 1, "ranks (`N`) that hold the model."+unchanged)
	f.IntVar(&n.stage, "stage", 0, "ZeRO stage (`0-3`): at 3 each rank holds a part of the parameters, below all of them."+unchanged)
	f.IntVar(&n.threads, "threads", 0, "threads (`N`) of each rank; 0: cores/ranks, at least 1."+unchanged)
	f.BoolVar(&n.json, "json", false, "print the results as JSON")
	f.BoolVar(&n.quiet, "quiet", false, "print results and errors only")
}

func (n *inference) judge(f *faults) {
	f.check(n.from != "", "--from is needed: the folder of a run, of a step of it, or one of Hugging Face's")
	f.check(n.ranks >= 1 && n.ranks <= maxRanks, "--ranks %d: use 1 to %d", n.ranks, maxRanks)
	_, err := zero.Stage(n.stage)
	f.check(err == nil, "--stage %d: use 0 (each rank holds all parameters) to 3 (each a part)", n.stage)
	f.check(n.threads >= 0 && n.threads <= maxThreads, "--threads %d: use 1 to %d, or 0 for cores/ranks", n.threads, maxThreads)
}

// open opens the source.
func (n *inference) open(c *cobra.Command) (err error) {
	n.stdout, n.stderr = c.OutOrStdout(), c.ErrOrStderr()
	if n.quiet {
		n.stderr = io.Discard
	}
	n.source, err = openSource(n.from)
	return err
}

// start makes the ranks and gives them the weights.
func (n *inference) start(ctx context.Context, cfg zeroshard.Config) error {
	m, err := gpt.New(n.source.config)
	if err != nil {
		return fmt.Errorf("%s: %w", n.from, err)
	}
	cfg.Model, cfg.Inference, cfg.Ranks, cfg.Stage, cfg.Threads, cfg.Prefetch = m, true, n.ranks, n.stage, n.threads, 1
	began := time.Now()
	if n.cluster, err = zeroshard.Local(ctx, cfg); err != nil {
		return err
	}
	if err := n.cluster.Load(ctx, n.source.read); err != nil {
		return err
	}
	c := n.source.config
	fmt.Fprintf(n.stderr, "model      %d layers × %d heads × %d, vocabulary %d, %d positions, from %s in %.1f s\n",
		c.Layers, c.Heads, c.Width, c.Vocab, c.Positions, n.from, time.Since(began).Seconds())
	return nil
}

// told says what was done, how fast, and what memory it took.
func (n *inference) told(verb string, tokens int, took time.Duration) {
	var used, planned int64
	for _, m := range n.cluster.Memory() {
		used, planned = max(used, m.Used), max(planned, m.Planned)
	}
	fmt.Fprintf(n.stderr, "%-10s %d tokens in %.2f s, %.0f tokens/s; a rank used %s of %s planned\n", verb, tokens, took.Seconds(),
		float64(tokens)/took.Seconds(), memory.FormatBytes(used), memory.FormatBytes(planned))
}

func (n *inference) close() {
	if n.cluster != nil {
		n.cluster.Close()
	}
	if n.source != nil {
		n.source.close()
	}
}
