package train_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"zeroshard/optim"
	"zeroshard/train"
	"zeroshard/zero"
)

// world is a World that records what it is asked and answers by the number of the call.
type world struct {
	hyper  []optim.Hyper
	leaves []int32 // the first token of each leaf that Step asked for
	held   []int32 // and Eval
	skip   func(step int) *zero.Skip
	fail   func(step int) error
	seen   [][]int32
	after  func()
}

func (w *world) Step(_ context.Context, leaf func(int) (zero.Batch, error), h optim.Hyper) (zero.Stats, error) {
	w.hyper = append(w.hyper, h)
	step := len(w.hyper)
	if w.fail != nil && w.fail(step) != nil {
		return zero.Stats{}, w.fail(step)
	}
	for i := range 2 {
		b, err := leaf(i)
		if err != nil {
			return zero.Stats{}, err
		}
		w.leaves = append(w.leaves, b.Tokens[0])
	}
	st := zero.Stats{Loss: 1 / float64(step), Tokens: 20, Norm: 0.5}
	if w.skip != nil {
		st.Skipped = w.skip(step)
	}
	if w.after != nil {
		w.after()
	}
	return st, nil
}

func (w *world) Eval(_ context.Context, leaf func(int) (zero.Batch, error)) (zero.Loss, error) {
	var l zero.Loss
	for i := range 3 {
		b, err := leaf(i)
		if err != nil {
			return l, err
		}
		w.held = append(w.held, b.Tokens[0])
		l.Sum += float64(b.Tokens[0])
		l.Tokens += 2
	}
	return l, nil
}

func (w *world) Logits(_ context.Context, tokens []int32) ([]float32, error) {
	w.seen = append(w.seen, slices.Clone(tokens))
	return []float32{0, 3, 2, 1}, nil
}

// tokens makes leaf i of step s the token 100·s+i.
type tokens struct{ bad int }

func (d tokens) Train(step, leaf int) (zero.Batch, error) {
	if step == d.bad {
		return zero.Batch{}, errBad
	}
	return zero.Batch{Tokens: []int32{int32(100*step + leaf)}}, nil
}

func (d tokens) Held(leaf int) (zero.Batch, error) {
	return zero.Batch{Tokens: []int32{int32(leaf)}}, nil
}

var errBad = errors.New("bad leaf")

// clock advances by a tenth of a second with each look.
func clock() func() time.Time {
	t := time.Unix(0, 0)
	return func() time.Time { t = t.Add(100 * time.Millisecond); return t }
}

func settings(events *[]train.Event) train.Settings {
	return train.Settings{Steps: 6, EvalEvery: 4, EvalRounds: 2, EvalLeaves: 3, MaxSkips: 3, Now: clock(),
		Rate:   func(step int) float64 { return float64(step) },
		Report: func(e train.Event) { *events = append(*events, e) }}
}

func TestRunGivesEachStepItsLeavesAndRate(t *testing.T) {
	var w world
	var events []train.Event
	res, err := train.Run(t.Context(), &w, tokens{}, settings(&events))
	if err != nil {
		t.Fatal(err)
	}
	if want := []int32{100, 101, 200, 201, 300, 301, 400, 401, 500, 501, 600, 601}; !slices.Equal(w.leaves, want) {
		t.Errorf("leaves %v, want %v", w.leaves, want)
	}
	for i, h := range w.hyper {
		if h.Step != i+1 || h.LR != float64(i+1) {
			t.Errorf("step %d: hyper %+v", i+1, h)
		}
	}
	if want := []int32{0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5}; !slices.Equal(w.held, want) {
		t.Errorf("held-out leaves %v, want %v: after steps 4 and 6, two rounds of three", w.held, want)
	}
	if res.ValLoss != 15.0/12 {
		t.Errorf("validation loss %v, want the mean over all tokens, 15/12", res.ValLoss)
	}
	if res.Steps != 6 || res.Tokens != 120 || res.Time != 600*time.Millisecond || res.Stopped {
		t.Errorf("result %+v", res)
	}
	if len(res.Losses) != 6 || res.Losses[2] != 1.0/3 {
		t.Errorf("losses %v", res.Losses)
	}
	var steps, evals []int
	for _, e := range events {
		if e.Validation {
			evals = append(evals, e.Step)
		} else {
			steps = append(steps, e.Step)
		}
	}
	if !slices.Equal(steps, []int{1, 2, 3, 4, 5, 6}) || !slices.Equal(evals, []int{4, 6}) {
		t.Errorf("steps %v, validations after %v", steps, evals)
	}
	if e := events[1]; e.Left != 400*time.Millisecond || e.Last {
		t.Errorf("event of step 2: %+v", e)
	}
	if e := events[len(events)-2]; !e.Last || e.Left != 0 {
		t.Errorf("event of the last step: %+v", e)
	}
}

func TestRunEnds(t *testing.T) {
	boom := errors.New("boom")
	nan := &zero.Skip{}
	for _, c := range []struct {
		name  string
		world world
		data  tokens
		set   func(*train.Settings, *world)
		steps int
		want  error
		val   bool
	}{
		{name: "stop-at", set: func(s *train.Settings, _ *world) { s.StopAt = 3 }, steps: 3, val: true},
		{name: "stop-at past the end", set: func(s *train.Settings, _ *world) { s.StopAt = 9 }, steps: 6, val: true},
		{name: "a failing step", world: world{fail: func(s int) error {
			if s == 3 {
				return boom
			}
			return nil
		}}, steps: 2, want: boom},
		{name: "a bad leaf", data: tokens{bad: 2}, steps: 1, want: errBad},
		{name: "skips in a row", world: world{skip: func(s int) *zero.Skip {
			if s > 1 {
				return nan
			}
			return nil
		}}, steps: 4, want: train.ErrDiverged},
		{name: "skips that are not in a row", world: world{skip: func(s int) *zero.Skip {
			if s%3 != 0 {
				return nan
			}
			return nil
		}}, steps: 6, val: true},
		{name: "a request", set: func(s *train.Settings, w *world) {
			stop := make(chan struct{})
			s.Stop = stop
			w.after = func() {
				if len(w.hyper) == 2 {
					close(stop)
				}
			}
		}, steps: 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			var events []train.Event
			s := settings(&events)
			if c.set != nil {
				c.set(&s, &c.world)
			}
			res, err := train.Run(t.Context(), &c.world, c.data, s)
			if !errors.Is(err, c.want) {
				t.Fatalf("error %v, want %v", err, c.want)
			}
			if res.Steps != c.steps {
				t.Errorf("%d steps, want %d", res.Steps, c.steps)
			}
			if got := !math.IsNaN(res.ValLoss); got != c.val {
				t.Errorf("validation loss %v, want one: %v", res.ValLoss, c.val)
			}
			if res.Stopped != (c.name == "a request") {
				t.Errorf("stopped: %v", res.Stopped)
			}
		})
	}
}

// A skipped step uses up its data and its rate, but bias correction counts updates.
func TestSkippedStepIsNoUpdate(t *testing.T) {
	var events []train.Event
	w := world{skip: func(s int) *zero.Skip {
		if s == 2 {
			return &zero.Skip{}
		}
		return nil
	}}
	res, err := train.Run(t.Context(), &w, tokens{}, settings(&events))
	if err != nil || res.At.Skipped != 1 {
		t.Fatal(res.At.Skipped, err)
	}
	var got []string
	for _, h := range w.hyper {
		got = append(got, fmt.Sprint(h.Updates(), "@", h.LR))
	}
	if want := []string{"1@1", "2@2", "2@3", "3@4", "4@5", "5@6"}; !slices.Equal(got, want) {
		t.Errorf("update@rate %v, want %v", got, want)
	}
}

func TestDivergedErrorSaysWhere(t *testing.T) {
	w := world{skip: func(int) *zero.Skip { return &zero.Skip{} }}
	var events []train.Event
	_, err := train.Run(t.Context(), &w, tokens{}, settings(&events))
	var d *train.DivergedError
	if !errors.As(err, &d) || d.Step != 3 || d.Skips != 3 || d.Last == nil {
		t.Fatalf("%#v", err)
	}
}
