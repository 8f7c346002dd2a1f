// Command mlp trains a model of its own, package perceptron, with the library: two ranks at stage 3, on the text that every Go
// installation has. It then reads and sets a parameter as a tensor.
//
//	go run ./examples/mlp
package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"gorgonia.org/tensor"

	"zeroshard"
	"zeroshard/data"
	"zeroshard/examples/mlp/perceptron"
	"zeroshard/optim"
	"zeroshard/train"
	"zeroshard/zero"
)

const vocab, seq, microBatch, heldLeaves = 256, 64, 4, 8

func main() {
	if err := run(context.Background(), os.Stdout, 200); err != nil {
		fmt.Fprintln(os.Stderr, "mlp:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, steps int) error {
	path, err := data.DefaultPath()
	if err != nil {
		return err
	}
	text, err := data.OpenSet([]string{path}, vocab, seq)
	if err != nil {
		return err
	}
	defer text.Close()
	corpus := train.NewCorpus(text, 1, microBatch, seq, heldLeaves)

	cluster, err := zeroshard.Local(ctx, zeroshard.Config{
		Model: perceptron.New(perceptron.Config{Vocab: vocab, Context: 4, Width: 32, Hidden: 128}),
		Ranks: 2, Stage: 3, GlobalBatch: 16, MicroBatch: microBatch, Seq: seq, EvalLeaves: heldLeaves, Prefetch: 1, Clip: 1, Seed: 1,
	})
	if err != nil {
		return err
	}
	defer cluster.Close()

	rates := optim.Schedule{Kind: optim.Cosine, Base: 1e-2, Warmup: 10, Steps: steps, Floor: 0.1}
	for step := 1; step <= steps; step++ {
		leaf := func(leaf int) (zero.Batch, error) { return corpus.Train(step, leaf) }
		stats, err := cluster.Step(ctx, leaf, optim.Hyper{Step: step, LR: rates.LR(step)})
		if err != nil {
			return err
		}
		if step == 1 || step%50 == 0 {
			fmt.Fprintf(out, "step %3d  loss %.3f\n", step, stats.Loss)
		}
	}
	return inspect(ctx, out, cluster, corpus)
}

// inspect reads a parameter, sets it, and shows what that does.
func inspect(ctx context.Context, out io.Writer, cluster *zeroshard.Cluster, corpus *train.Corpus) error {
	before, err := cluster.Eval(ctx, corpus.Held)
	if err != nil {
		return err
	}
	learned, err := cluster.Full(ctx, "bias") // a copy of the whole parameter, from all ranks
	if err != nil {
		return err
	}
	changed := learned.Clone().(*tensor.Dense)
	if err := changed.SetAt(float32(5), 'e'); err != nil { // a strong liking for the letter e
		return err
	}
	if err := cluster.Set(ctx, "bias", changed); err != nil {
		return err
	}
	with, err := cluster.Eval(ctx, corpus.Held)
	if err != nil {
		return err
	}
	if err := cluster.Set(ctx, "bias", learned); err != nil {
		return err
	}
	after, err := cluster.Eval(ctx, corpus.Held)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "validation loss %.3f, with a liking for e %.3f, without it again %.3f\n", mean(before), mean(with), mean(after))
	for _, m := range cluster.Memory() {
		fmt.Fprintf(out, "rank %d: planned %d bytes, used %d\n", m.Rank, m.Planned, m.Used)
	}
	return nil
}

func mean(l zero.Loss) float64 { return l.Sum / float64(l.Tokens) }
