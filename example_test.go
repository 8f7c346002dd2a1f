package zeroshard_test

import (
	"context"
	"fmt"
	"log"

	"gorgonia.org/tensor"

	"zeroshard"
	"zeroshard/examples/mlp/perceptron"
	"zeroshard/optim"
	"zeroshard/zero"
)

// counting is a leaf of 2 sequences of 8 tokens in which each token is the one before plus 1, modulo 5.
func counting(leaf int) (zero.Batch, error) {
	var b zero.Batch
	for row := range 2 {
		for t := range 8 {
			b.Tokens = append(b.Tokens, int32((leaf+row+t)%5))
			b.Targets = append(b.Targets, int32((leaf+row+t+1)%5))
		}
	}
	return b, nil
}

// A model of one's own, units of package perceptron, learns to count on two ranks at stage 3.
func ExampleLocal() {
	ctx := context.Background()
	c, err := zeroshard.Local(ctx, zeroshard.Config{
		Model: perceptron.New(perceptron.Config{Vocab: 5, Context: 2, Width: 8, Hidden: 16}),
		Ranks: 2, Stage: 3, GlobalBatch: 8, MicroBatch: 2, Seq: 8, Seed: 1,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	for step := 1; step <= 60; step++ {
		stats, err := c.Step(ctx, counting, optim.Hyper{Step: step, LR: 0.02})
		if err != nil {
			log.Fatal(err)
		}
		if step%20 == 1 {
			fmt.Printf("step %2d: loss %.1f\n", step, stats.Loss)
		}
	}
	logits, err := c.Logits(ctx, []int32{2, 3})
	if err != nil {
		log.Fatal(err)
	}
	best, err := tensor.New(tensor.WithBacking(logits)).Argmax(0)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("after 2, 3 comes", best.ScalarValue())
	for _, m := range c.Memory() {
		fmt.Printf("rank %d: used what was planned: %v\n", m.Rank, m.Used == m.Planned)
	}
	// Output:
	// step  1: loss 1.6
	// step 21: loss 0.1
	// step 41: loss 0.0
	// after 2, 3 comes 4
	// rank 0: used what was planned: true
	// rank 1: used what was planned: true
}

// Parameters are read and set whole, as tensors, wherever their slices rest.
func ExampleCluster_Full() {
	ctx := context.Background()
	c, err := zeroshard.Local(ctx, zeroshard.Config{
		Model: perceptron.New(perceptron.Config{Vocab: 5, Context: 2, Width: 8, Hidden: 16}),
		Ranks: 3, Stage: 3, GlobalBatch: 6, MicroBatch: 2, Seq: 8,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	err = c.Set(ctx, "bias", tensor.New(tensor.WithBacking([]float32{1, 2, 3, 4, 5})))
	if err != nil {
		log.Fatal(err)
	}
	v, err := c.Full(ctx, "bias")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(v.Shape(), v.Data())
	// Output:
	// (5) [1 2 3 4 5]
}

// A plan says what a run would need, without making anything.
func ExamplePlan() {
	for stage := range 4 {
		p, err := zeroshard.Plan(zeroshard.Config{
			Model: perceptron.New(perceptron.Config{Vocab: 256, Context: 4, Width: 32, Hidden: 128}),
			Ranks: 4, Stage: stage, GlobalBatch: 4, MicroBatch: 1, Seq: 64,
		})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("stage %d: model state %7d bytes a rank\n", stage, p.Cost().ModelState)
	}
	// Output:
	// stage 0: model state  475136 bytes a rank
	// stage 1: model state  296960 bytes a rank
	// stage 2: model state  207872 bytes a rank
	// stage 3: model state  118784 bytes a rank
}
