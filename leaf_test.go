package zeroshard_test

import (
	"errors"
	"strings"
	"testing"

	"zeroshard"
	"zeroshard/device"
	"zeroshard/optim"
	"zeroshard/zero"
)

// A panic in the caller's leaf is an error of the step that names the micro-batch; the process and the other ranks live on.
func TestLeafPanicIsAnError(t *testing.T) {
	c := micro(t)
	c.Ranks, c.Stage = 2, 3
	cl, err := zeroshard.Local(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	_, err = cl.Step(t.Context(), func(leaf int) (zero.Batch, error) { panic("no data") }, optim.Hyper{Step: 1, LR: 1e-3})
	var p *device.PanicError
	if !errors.As(err, &p) || !strings.Contains(err.Error(), "micro-batch") || !strings.Contains(err.Error(), "no data") {
		t.Errorf("Step says %v", err)
	}
}

// Absurd sizes are refused before anything is made of them.
func TestAbsurdSizes(t *testing.T) {
	for _, change := range []func(*zeroshard.Config){
		func(c *zeroshard.Config) { c.Threads = 1 << 40 },
		func(c *zeroshard.Config) { c.Ranks = 1 << 60 },
	} {
		c := micro(t)
		change(&c)
		if _, err := zeroshard.Plan(c); !errors.Is(err, zero.ErrOptions) {
			t.Errorf("Plan says %v", err)
		}
	}
}

// A token that the vocabulary has not is named with its place. In Logits every rank is given it alike, so the cluster lives on.
func TestTokensAreChecked(t *testing.T) {
	c := micro(t)
	c.Ranks, c.Stage = 2, 3
	cl, err := zeroshard.Local(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	if _, err := cl.Logits(t.Context(), []int32{1, 97}); !errors.Is(err, zero.ErrBatch) || !strings.Contains(err.Error(), "token 97 at place 1") {
		t.Errorf("Logits says %v", err)
	}
	if _, err := cl.Logits(t.Context(), []int32{1, 96}); err != nil {
		t.Errorf("after a refused token: %v", err)
	}
	rows := c.MicroBatch * c.Seq
	_, err = cl.Step(t.Context(), func(leaf int) (zero.Batch, error) {
		b := zero.Batch{Tokens: make([]int32, rows), Targets: make([]int32, rows)}
		if leaf == 1 {
			b.Targets[2] = 200
		}
		return b, nil
	}, optim.Hyper{Step: 1, LR: 1e-3})
	if !errors.Is(err, zero.ErrBatch) || !strings.Contains(err.Error(), "micro-batch 1") || !strings.Contains(err.Error(), "target 200 at place 2") {
		t.Errorf("Step says %v", err)
	}
}
