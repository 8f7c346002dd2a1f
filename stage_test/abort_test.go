package stagetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"zeroshard"
	"zeroshard/collectives"
	"zeroshard/device"
	"zeroshard/device/devicetest"
	"zeroshard/kernels"
	"zeroshard/models"
	"zeroshard/optim"
	"zeroshard/zero"
)

// A context cancelled while some op runs: either the step is done on all ranks, or all return the cause.
func TestCancelAtEveryOp(t *testing.T) {
	for _, c := range []cell{{Stage: 3, Ranks: 3, Prefetch: 1}, {Stage: 1, Ranks: 2}, {Stage: 0, Ranks: 1}} {
		j := c.config(job(t, "micro", 4, 1, 4, 0))
		pr, err := zeroshard.Plan(j)
		if err != nil {
			t.Fatal(err)
		}
		stopped := 0
		for i := range pr.Train.Ops {
			if pr.Train.Ops[i].Lane == zero.Host || i%every(pr.Train) != 0 {
				continue
			}
			t.Run(fmt.Sprintf("stage %d, %d ranks, %s", c.Stage, c.Ranks, pr.Train.Line(i)), func(t *testing.T) {
				if cancelAt(t, j, pr.Train.Line(i)) {
					stopped++
				}
			})
		}
		if stopped == 0 {
			t.Errorf("%v: no cancellation stopped a step", c)
		}
	}
}

func cancelAt(t *testing.T, j zeroshard.Config, label string) (stopped bool) {
	leaks(t)
	cause := errors.New("the user has had enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	w := mustCrew(t, j, seams{device: func(r int, d device.Device) device.Device {
		return devicetest.Wrap(d, func(l string) error {
			if r == j.Ranks-1 && l == label {
				cancel(cause)
			}
			return nil
		})
	}})
	_, errs := w.step(t, ctx, 1)
	for r, err := range errs {
		if (err == nil) != (errs[0] == nil) || (err != nil && !errors.Is(err, cause)) {
			t.Errorf("rank %d returned %v, rank 0 %v", r, err, errs[0])
		}
	}
	return errs[0] != nil
}

// Faults that come from inside an op, from every seam that it calls.
func TestFaultInEverySeam(t *testing.T) {
	for _, c := range []struct {
		name string
		says string // part of the plan's line
		seams
	}{
		{"a unit returns an error", "forward        layer.1", seams{config: withUnits(func(c *models.Call) error { return errInjected })}},
		{"a unit panics", "forward        layer.1", seams{config: withUnits(func(c *models.Call) error { panic(errInjected) })}},
		{"a kernel panics", "forward        layer.0", seams{kernels: func(r int, k kernels.Backend) kernels.Backend {
			return &badKernels{Backend: k, on: r == 1}
		}}},
		{"the optimizer returns an error", "update", seams{config: func(r int, c zeroshard.Config) zeroshard.Config {
			c.Optimizer = &badOptimizer{Optimizer: c.Optimizer, on: r == 1}
			return c
		}}},
		{"a collective returns an error", "reduce-scatter", seams{group: func(r int, g collectives.Group) collectives.Group {
			return &badGroup{Group: g, on: r == 1}
		}}},
		{"a copy is refused", "feed", seams{device: func(r int, d device.Device) device.Device {
			return &badCopies{Device: d, on: r == 1}
		}}},
		{"a copy fails", "feed", seams{device: func(r int, d device.Device) device.Device {
			return devicetest.Wrap(d, failSecondCopy(r))
		}}},
	} {
		for _, stage := range []int{0, 3} {
			t.Run(fmt.Sprintf("%s, stage %d", c.name, stage), func(t *testing.T) {
				leaks(t)
				w := mustCrew(t, cell{Stage: stage, Ranks: 2}.config(oddJob(&odd{vocab: 31, dim: 7, layers: 2}, 4, optim.DefaultAdamW())), c.seams)
				var errs []error
				_, errs = w.step(t, context.Background(), 1)
				if c.says == "update" && errs[0] == nil {
					errs = errs[1:] // at stages 0 and 3 nothing is exchanged after an update
				}
				for r, err := range errs {
					var op *zero.OpError
					if !errors.As(err, &op) || !errors.Is(err, errInjected) || !strings.Contains(err.Error(), "rank 1, step 1") || !strings.Contains(err.Error(), c.says) {
						t.Errorf("rank %d returned %v", r, err)
					}
				}
			})
		}
	}
}

// withUnits makes a unit of rank 1 fail.
func withUnits(fail func(*models.Call) error) func(int, zeroshard.Config) zeroshard.Config {
	return func(r int, c zeroshard.Config) zeroshard.Config {
		c.Model = &badModel{odd: c.Model.(*odd), on: r == 1, fail: fail}
		return c
	}
}

type badModel struct {
	*odd
	on   bool
	fail func(*models.Call) error
}

func (m *badModel) Units() []models.Unit {
	units := m.odd.Units()
	if m.on {
		units[2] = &badUnit{units[2], m.fail}
	}
	return units
}

type badUnit struct {
	models.Unit
	fail func(*models.Call) error
}

func (u *badUnit) Forward(c *models.Call) error { return u.fail(c) }

type badKernels struct {
	kernels.Backend
	on bool
}

func (k *badKernels) GELU(s device.Stream, y, x kernels.Buffer) {
	if k.on {
		panic(errInjected)
	}
	k.Backend.GELU(s, y, x)
}

type badOptimizer struct {
	optim.Optimizer
	on bool
}

func (o *badOptimizer) Update(s device.Stream, k kernels.Vector, h optim.Hyper, x optim.Slice) error {
	if o.on {
		return errInjected
	}
	return o.Optimizer.Update(s, k, h, x)
}

type badGroup struct {
	collectives.Group
	on bool
}

func (g *badGroup) ReduceScatter(ctx context.Context, s device.Stream, r collectives.Reduction) error {
	if g.on {
		return errInjected
	}
	return g.Group.ReduceScatter(ctx, s, r)
}

// badCopies refuses copies of tokens.
type badCopies struct {
	device.Device
	on bool
}

func (d *badCopies) Copy(s device.Stream, dst, src device.Buffer) error {
	if d.on && dst.DType == device.I32 {
		return errInjected
	}
	return d.Device.Copy(s, dst, src)
}

// failSecondCopy lets the copies pass that set initial values, and fails one of a step.
func failSecondCopy(rank int) devicetest.Hook {
	var stepping atomic.Bool
	return func(label string) error {
		if strings.Contains(label, "feed") {
			stepping.Store(true)
		}
		if rank == 1 && label == "copy" && stepping.Load() {
			return errInjected
		}
		return nil
	}
}

// A micro-batch that cannot be had, or that is of the wrong size, ends the step on all ranks and the cluster with it.
func TestBadBatches(t *testing.T) {
	for _, c := range []struct {
		name string
		leaf func(j zeroshard.Config, leaf int) (zero.Batch, error)
		want error
		says string
	}{
		{"error", func(j zeroshard.Config, leaf int) (zero.Batch, error) { return zero.Batch{}, errInjected }, errInjected, "micro-batch 3: injected"},
		{"short", func(j zeroshard.Config, leaf int) (zero.Batch, error) {
			b := batch(j, 1, leaf)
			b.Tokens = b.Tokens[1:]
			return b, nil
		}, zero.ErrBatch, "micro-batch 3 has 3 tokens and 4 targets, both must be 4"},
		{"empty", func(j zeroshard.Config, leaf int) (zero.Batch, error) { return zero.Batch{}, nil }, zero.ErrBatch, "micro-batch 3 has 0 tokens"},
	} {
		t.Run(c.name, func(t *testing.T) {
			leaks(t)
			ctx := context.Background()
			j := cell{Stage: 3, Ranks: 3}.config(job(t, "micro", 4, 1, 4, 0))
			cl, err := zeroshard.Local(ctx, j)
			if err != nil {
				t.Fatal(err)
			}
			leaf := func(leaf int) (zero.Batch, error) {
				if leaf == 3 {
					return c.leaf(j, leaf)
				}
				return batch(j, 1, leaf), nil
			}
			within(t, func() {
				for range 2 { // the second call returns the failure of the first
					if _, err := cl.Step(ctx, leaf, hyper(1)); !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
						t.Errorf("Step: %v", err)
					}
				}
				if _, err := cl.Eval(ctx, leaf); !errors.Is(err, c.want) {
					t.Errorf("Eval: %v", err)
				}
				if err := cl.Close(); err != nil {
					t.Errorf("Close: %v", err)
				}
			})
		})
	}
}

// One rank with the wrong number of micro-batches.
func TestWrongNumberOfBatches(t *testing.T) {
	leaks(t)
	w := mustCrew(t, cell{Stage: 2, Ranks: 3}.config(job(t, "micro", 6, 1, 4, 0)), seams{})
	var errs []error
	within(t, func() {
		errs = each(3, func(r int) error {
			micro := w.micro(r, 1)
			if r == 2 {
				micro = micro[1:]
			}
			_, err := w.engines[r].Step(context.Background(), micro, hyper(1))
			return err
		})
	})
	for r, err := range errs {
		if !errors.Is(err, zero.ErrBatch) || !strings.Contains(err.Error(), "rank 2 got 1 micro-batches, its plan has 2 slots") {
			t.Errorf("rank %d returned %v", r, err)
		}
	}
}

// A second Close does nothing, and what comes after it is refused.
func TestClose(t *testing.T) {
	leaks(t)
	ctx := context.Background()
	j := cell{Stage: 3, Ranks: 2}.config(job(t, "micro", 4, 1, 4, 0))
	cl, err := zeroshard.Local(ctx, j)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := cl.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	within(t, func() {
		leaf := func(leaf int) (zero.Batch, error) { return batch(j, 1, leaf), nil }
		_, step := cl.Step(ctx, leaf, hyper(1))
		_, eval := cl.Eval(ctx, leaf)
		_, logits := cl.Logits(ctx, []int32{1})
		_, hash := cl.StateSHA256(ctx)
		for i, err := range []error{step, eval, logits, hash} {
			if !errors.Is(err, zero.ErrClosed) {
				t.Errorf("call %d after Close: %v", i, err)
			}
		}
	})
	w := mustCrew(t, j, seams{})
	w.close(t) // and again at the end of the test
	within(t, func() {
		for r := range w.engines {
			if _, err := w.engines[r].Step(ctx, w.micro(r, 1), hyper(1)); !errors.Is(err, zero.ErrClosed) {
				t.Errorf("rank %d steps after Close and returns %v", r, err)
			}
		}
	})
}

// A rank that ends while the others train: they return at once and name it.
func TestPain50RankThatLeaves(t *testing.T) {
	leaks(t)
	w := mustCrew(t, cell{Stage: 3, Ranks: 3}.config(job(t, "micro", 6, 1, 4, 0)), seams{})
	w.mustStep(t, 1)
	var errs []error
	within(t, func() {
		errs = each(3, func(r int) error {
			if r == 1 {
				return w.engines[r].Close()
			}
			_, err := w.engines[r].Step(context.Background(), w.micro(r, 2), hyper(2))
			return err
		})
	})
	for r, err := range errs {
		var abort *collectives.AbortError
		if r != 1 && (!errors.As(err, &abort) || !errors.Is(err, collectives.ErrClosed) || !strings.Contains(err.Error(), "aborted by rank 1")) {
			t.Errorf("rank %d returned %v", r, err)
		}
	}
	if errs[1] != nil {
		t.Errorf("Close: %v", errs[1])
	}
}

// A rank that never comes: the others wait as long as their context says. It finds the group aborted when it comes at last.
func TestPain50RankThatIsSilent(t *testing.T) {
	leaks(t)
	w := mustCrew(t, cell{Stage: 3, Ranks: 3}.config(job(t, "micro", 6, 1, 4, 0)), seams{})
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	within(t, func() {
		step := func(ctx context.Context, r int) error {
			_, err := w.engines[r].Step(ctx, w.micro(r, 1), hyper(1))
			return err
		}
		errs := each(2, func(r int) error { return step(ctx, r) })
		errs = append(errs, step(context.Background(), 2))
		for r, err := range errs {
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("rank %d returned %v", r, err)
			}
		}
	})
}

// Ranks that do different things: the first call that differs is an error on all of them and names both.
func TestPain51DifferentOrder(t *testing.T) {
	for stage := range 4 {
		leaks(t)
		w := mustCrew(t, cell{Stage: stage, Ranks: 3}.config(job(t, "micro", 6, 1, 4, 0)), seams{})
		var errs []error
		within(t, func() {
			errs = each(3, func(r int) error {
				if r == 2 {
					return passes[1].run(w, r) // an evaluation
				}
				_, err := w.engines[r].Step(context.Background(), w.micro(r, 1), hyper(1))
				return err
			})
		})
		for r, err := range errs {
			if !errors.Is(err, collectives.ErrMismatch) || !strings.Contains(err.Error(), "ranks 0-1") || !strings.Contains(err.Error(), "rank 2") {
				t.Errorf("stage %d, rank %d returned %v", stage, r, err)
			}
		}
	}
}
