package stagetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"zeroshard"
	"zeroshard/device"
	"zeroshard/memory"
	"zeroshard/optim"
	"zeroshard/zero"
)

// Ranks that were not started alike: all of them return the first line that differs, from both sides.
func TestDifferentPlans(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*zeroshard.Config)
	}{
		{"prefetch", func(c *zeroshard.Config) { c.Prefetch = 1 }},
		{"stage", func(c *zeroshard.Config) { c.Stage = 2 }},
		{"batch", func(c *zeroshard.Config) { c.GlobalBatch = 8 }},
		{"threshold", func(c *zeroshard.Config) { c.PersistenceThreshold = 100 }},
		{"optimizer", func(c *zeroshard.Config) { c.Optimizer = optim.SGD{} }},
		{"clip", func(c *zeroshard.Config) { c.Clip = 7 }},
		{"seed", func(c *zeroshard.Config) { c.Seed++ }},
	} {
		t.Run(c.name, func(t *testing.T) {
			leaks(t)
			j := cell{Stage: 3, Ranks: 3}.config(job(t, "micro", 6, 1, 4, 0))
			_, errs := newCrew(t, j, seams{config: func(r int, j zeroshard.Config) zeroshard.Config {
				if r == 1 {
					c.change(&j)
				}
				return j
			}})
			for r, err := range errs {
				if !errors.Is(err, zero.ErrMismatch) || !strings.Contains(err.Error(), "\nrank 0: ") || !strings.Contains(err.Error(), "\nrank 1: ") {
					t.Errorf("rank %d returned %v", r, err)
				}
			}
			mine, other := plans(t, j), j
			c.change(&other)
			for i, line := range plans(t, other) {
				if line != mine[i] {
					if want := fmt.Sprintf("rank 0: %s\nrank 1: %s", mine[i], line); !strings.Contains(errs[0].Error(), want) && c.name != "optimizer" {
						t.Errorf("the first difference is\n%s\nthe error %v", want, errs[0])
					}
					break
				}
			}
		})
	}
}

// plans is the text that ranks compare, in lines, but for the settings.
func plans(t *testing.T, j zeroshard.Config) []string {
	t.Helper()
	pr, err := zeroshard.Plan(j)
	if err != nil {
		t.Fatal(err)
	}
	var text string
	for _, p := range pr.Plans() {
		text += p.Text() + p.Buffers()
	}
	return strings.Split(text, "\n")
}

// A rank that cannot start: its peers do not wait for it.
func TestRankThatCannotStart(t *testing.T) {
	for _, c := range []struct {
		name string
		want error
		seams
	}{
		{"no plan for its precision", zero.ErrOptions, seams{config: func(r int, c zeroshard.Config) zeroshard.Config {
			if r == 1 {
				c.Precision = zero.BF16
			}
			return c
		}}},
		{"memory", memory.ErrLimit, seams{observe: func(r int) memory.Observer {
			if r == 1 {
				return memory.NewLimit(100_000)
			}
			return memory.NewTracker()
		}}},
		{"streams", errInjected, seams{device: func(r int, d device.Device) device.Device { return &noStreams{d, r == 1} }}},
	} {
		t.Run(c.name, func(t *testing.T) {
			leaks(t)
			w, errs := newCrew(t, cell{Stage: 3, Ranks: 2}.config(job(t, "micro", 4, 1, 4, 0)), c.seams)
			if !errors.Is(errs[1], c.want) {
				t.Fatalf("rank 1 returned %v", errs[1])
			}
			if err := errs[0]; err == nil {
				within(t, func() {
					_, err := w.engines[0].Step(context.Background(), w.micro(0, 1), hyper(1))
					if !errors.Is(err, c.want) {
						t.Errorf("rank 0 steps and returns %v", err)
					}
				})
			} else if !errors.Is(err, c.want) {
				t.Errorf("rank 0 returned %v", err)
			}
		})
	}
}

// noStreams is a device without a comm stream.
type noStreams struct {
	device.Device
	on bool
}

func (d *noStreams) NewStream(name string) (device.Stream, error) {
	if d.on && name == "comm" {
		return nil, errInjected
	}
	return d.Device.NewStream(name)
}

// A context that ends before the ranks have started.
func TestStartWithEndedContext(t *testing.T) {
	leaks(t)
	cause := errors.New("the user has left")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	within(t, func() {
		cl, err := zeroshard.Local(ctx, cell{Stage: 3, Ranks: 3}.config(job(t, "micro", 6, 1, 4, 0)))
		if cl != nil || !errors.Is(err, cause) {
			t.Errorf("Local: %v", err)
		}
	})
}
