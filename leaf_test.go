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
