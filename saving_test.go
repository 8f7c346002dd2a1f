package zeroshard_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"path/filepath"
	"slices"
	"testing"

	"zeroshard"
	"zeroshard/checkpoint"
	"zeroshard/checkpoint/crashfs"
	"zeroshard/examples/mlp/perceptron"
	"zeroshard/optim"
	"zeroshard/zero"
)

// countingOn is a cluster that learns to count.
func countingOn(ctx context.Context, ranks, stage int) *zeroshard.Cluster {
	c, err := zeroshard.Local(ctx, zeroshard.Config{
		Model: perceptron.New(perceptron.Config{Vocab: 5, Context: 2, Width: 8, Hidden: 16}),
		Ranks: ranks, Stage: stage, GlobalBatch: 8, MicroBatch: 2, Seq: 8, Seed: 1,
	})
	if err != nil {
		log.Fatal(err)
	}
	return c
}

// What each rank holds is saved as it lies: nothing is gathered.
func ExampleCluster_Sources() {
	ctx := context.Background()
	c := countingOn(ctx, 3, 3)
	defer c.Close()
	for step := 1; step <= 5; step++ {
		if _, err := c.Step(ctx, counting, optim.Hyper{Step: step, LR: 0.02}); err != nil {
			log.Fatal(err)
		}
	}
	store := checkpoint.NewStore(&crashfs.FS{}, "run/checkpoints") // on the disk: checkpoint.OS{}
	err := store.Save(c.Manifest(checkpoint.Position{Step: 5, Updates: 5}), c.Sources())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(store.Steps())
	saved, err := store.Open(5)
	if err != nil {
		log.Fatal(err)
	}
	defer saved.Close()
	for _, f := range saved.Manifest.Files {
		fmt.Println(f.Name)
	}
	// Output:
	// [5] <nil>
	// rank-00000.safetensors
	// rank-00001.safetensors
	// rank-00002.safetensors
}

// Three ranks save at stage 3, two at stage 1 go on: with the same bits as if nobody had stopped.
func ExampleCluster_Restore() {
	ctx := context.Background()
	train := func(c *zeroshard.Cluster, from, to int) string {
		for step := from; step <= to; step++ {
			if _, err := c.Step(ctx, counting, optim.Hyper{Step: step, LR: 0.02}); err != nil {
				log.Fatal(err)
			}
		}
		hash, err := c.StateSHA256(ctx)
		if err != nil {
			log.Fatal(err)
		}
		return hash
	}
	store := checkpoint.NewStore(&crashfs.FS{}, "run/checkpoints")
	three := countingOn(ctx, 3, 3)
	defer three.Close()
	train(three, 1, 5)
	if err := store.Save(three.Manifest(checkpoint.Position{Step: 5, Updates: 5}), three.Sources()); err != nil {
		log.Fatal(err)
	}
	want := train(three, 6, 10)

	saved, err := store.Open(5)
	if err != nil {
		log.Fatal(err)
	}
	defer saved.Close()
	two := countingOn(ctx, 2, 1)
	defer two.Close()
	if err := two.Restore(ctx, saved); err != nil {
		log.Fatal(err)
	}
	fmt.Println("the same bits:", train(two, saved.Manifest.Step+1, 10) == want)
	// Output:
	// the same bits: true
}

// saveStep saves a cluster as a step into a folder.
func saveStep(t testing.TB, cl *zeroshard.Cluster, s *checkpoint.Store, step int) {
	t.Helper()
	if err := s.Save(cl.Manifest(checkpoint.Position{Step: step, Updates: step}), cl.Sources()); err != nil {
		t.Fatal(err)
	}
}

func openStep(t testing.TB, s *checkpoint.Store, step int) *checkpoint.Saved {
	t.Helper()
	saved, err := s.Open(step)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := saved.Close(); err != nil {
			t.Error(err)
		}
	})
	return saved
}

// A model without Init, with parameters of all odd shapes, goes through a folder on the disk; who restores had other values.
func TestRestoreOddShapes(t *testing.T) {
	c := oddJob(3, 3)
	cl := local(t, c)
	steps(t, cl, c, 1, 2)
	s := checkpoint.NewStore(checkpoint.OS{}, filepath.Join(t.TempDir(), "c"))
	saveStep(t, cl, s, 2)
	want := hash(t, cl)
	for ranks := 1; ranks <= 4; ranks++ {
		for stage := range 4 {
			other := local(t, oddJob(stage, ranks))
			if err := other.Restore(ctx, openStep(t, s, 2)); err != nil {
				t.Fatal(err)
			}
			if got := hash(t, other); got != want {
				t.Errorf("stage %d on %d ranks: %s, want %s", stage, ranks, got, want)
			}
		}
	}
	steps(t, cl, c, 3, 4) // saving leaves the cluster as it is
}

// A damaged file ends the cluster, as some ranks have other values then; the error names file and tensor.
func TestRestoreDamaged(t *testing.T) {
	f := &crashfs.FS{}
	s := checkpoint.NewStore(f, "c")
	c := preset(t, "tiny") // whose file has several blocks: the header's is another than the last
	cl := local(t, c)
	saveStep(t, cl, s, 0)
	at := "c/step-00000000/rank-00001.safetensors"
	r, err := f.Open(at)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Flip(at, int(r.Size())*8-1); err != nil {
		t.Fatal(err)
	}
	err = cl.Restore(ctx, openStep(t, s, 0))
	var bad *checkpoint.CorruptError
	if !errors.As(err, &bad) || bad.File != at || bad.Tensor == "" {
		t.Errorf("%v", err)
	}
	if _, again := cl.Step(ctx, leaves(c, 1), hyper(1)); again == nil {
		t.Error("half of other values, and the cluster trains on")
	}
}

// What cannot hold the state refuses it, and is as before.
func TestRestoreRefused(t *testing.T) {
	s := checkpoint.NewStore(&crashfs.FS{}, "c")
	c := micro(t)
	cl := local(t, c)
	saveStep(t, cl, s, 0)
	saved := openStep(t, s, 0)

	done, cancel := context.WithCancel(ctx)
	cancel()
	before := hash(t, cl)
	if err := cl.Restore(done, saved); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
	if hash(t, cl) != before {
		t.Error("the state is another")
	}

	inference := c
	inference.Inference = true
	in := local(t, inference)
	if err := in.Restore(ctx, saved); !errors.Is(err, zero.ErrOptions) {
		t.Errorf("a cluster for inference: %v", err)
	}
	if _, err := in.Logits(ctx, []int32{1}); err != nil {
		t.Errorf("after a refusal: %v", err)
	}
	if err := in.Load(ctx, func(name string, lo int, dst []float32) error { return saved.Read(name, checkpoint.Weights, lo, dst) }); err != nil {
		t.Error(err)
	}
	a, err := in.Logits(ctx, []int32{1, 2})
	if err != nil {
		t.Fatal(err)
	}
	b, err := cl.Logits(ctx, []int32{1, 2})
	if err != nil || !slices.Equal(a, b) {
		t.Errorf("scores differ (%v)", err)
	}

	saveStep(t, in, s, 1) // weights alone
	if m := openStep(t, s, 1).Manifest; len(m.States) != 0 || len(m.Params) == 0 {
		t.Errorf("saved by a cluster for inference: states %v, %d parameters", m.States, len(m.Params))
	}

	if err := cl.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cl.Restore(ctx, saved); !errors.Is(err, zero.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// Sources may be asked in any order and in any parts, as writers do; what does not rest on the rank is an error.
func TestSourcesInParts(t *testing.T) {
	cl := local(t, oddJob(2, 3))
	for r, src := range cl.Sources() {
		for _, p := range src.Pieces() {
			whole := make([]float32, p.Len)
			if err := src.Read(p, 0, whole); err != nil {
				t.Fatal(err)
			}
			for lo := p.Len - 1; lo >= 0; lo -= 7 {
				part := make([]float32, min(5, p.Len-lo))
				if err := src.Read(p, lo, part); err != nil || !slices.Equal(part, whole[lo:lo+len(part)]) {
					t.Errorf("rank %d, %+v at %d: %v", r, p, lo, err)
				}
			}
			if err := src.Read(p, p.Len, make([]float32, 1000)); !errors.Is(err, zero.ErrParameter) {
				t.Errorf("rank %d, past the end of %+v: %v", r, p, err)
			}
		}
	}
}
