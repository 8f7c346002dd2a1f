package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"zeroshard/optim"
	"zeroshard/zero"
)

// World is what the loop trains: all ranks of a run, moving in step. *zeroshard.Cluster is one.
type World interface {
	// Step trains on one global batch. leaf gives the batch of a micro-batch by its number in the global batch.
	Step(ctx context.Context, leaf func(leaf int) (zero.Batch, error), h optim.Hyper) (zero.Stats, error)
	// Eval returns the loss of as many leaves as the world was made for, without changing anything.
	Eval(ctx context.Context, leaf func(leaf int) (zero.Batch, error)) (zero.Loss, error)
	// Logits returns the scores of the token after tokens, one for each word of the vocabulary.
	Logits(ctx context.Context, tokens []int32) ([]float32, error)
}

// Data gives batches. Both methods are pure functions of their arguments, so it does not matter which rank asks, or when.
type Data interface {
	Train(step, leaf int) (zero.Batch, error) // step counts from 1
	Held(leaf int) (zero.Batch, error)        // of the held-out text
}

// Position is where a run stands: after a step. The zero Position is the start.
type Position struct {
	Step    int   // steps done
	Skipped int   // of them, without an update
	Tokens  int64 // trained on
}

// Settings of a run. None of them but Rate changes a bit of the result.
type Settings struct {
	From       Position               // where World stands: the run goes on from there
	Steps      int                    // the run's length, which Rate was made for
	StopAt     int                    // leave after this step; 0: Steps
	EvalEvery  int                    // validation loss every so many steps and after the last; 0: after the last
	EvalRounds int                    // calls of Eval for one validation loss
	EvalLeaves int                    // leaves of one call
	Rate       func(step int) float64 // learning rate of a step
	MaxSkips   int                    // so many skipped steps in a row end the run
	Stop       <-chan struct{}        // closed: finish the step and leave
	Now        func() time.Time       // the clock of step times
	Report     func(Event)            // called after each step and validation

	SaveEvery int                     // save after every so many steps
	Save      func(at Position) error // called after the step, before the next; nil: never. Also at the end, and when the run leaves on request
}

// Result is what a run leaves behind.
type Result struct {
	At      Position
	Steps   int           // steps done by this run, skipped ones included
	Losses  []float64     // mean training loss of each of them
	ValLoss float64       // the last validation loss; NaN before the first
	Tokens  int64         // trained on by this run
	Time    time.Duration // in steps: validation and saving do not count
	Stopped bool          // left on request, before the end
}

// Event is one line of the report: a step, or a validation loss after it.
type Event struct {
	Step, Steps int
	Loss        float64
	Validation  bool // Loss is of held-out text, and the fields below are empty
	LR, Norm    float64
	Skipped     *zero.Skip
	Tokens      int
	Took        time.Duration // this step
	Left        time.Duration // estimate for the steps to come
	Last        bool
}

// Run trains from s.From on. It returns what was reached also with an error.
//
// A skipped step (a gradient that is not finite: all ranks skip alike) uses up its data and its learning rate, but not a
// step of the optimizer, whose bias correction counts updates.
func Run(ctx context.Context, w World, d Data, s Settings) (*Result, error) {
	res := &Result{At: s.From, ValLoss: math.NaN()}
	last, skips, saved := s.Steps, 0, s.From.Step
	if s.StopAt > 0 {
		last = min(last, s.StopAt)
	}
	for step := s.From.Step + 1; step <= last; step++ {
		if res.Stopped = stopped(s.Stop); res.Stopped {
			return res, save(&s, res.At, saved)
		}
		began := s.Now()
		h := optim.Hyper{Step: step, Update: step - res.At.Skipped, LR: s.Rate(step)}
		stats, err := w.Step(ctx, func(leaf int) (zero.Batch, error) { return d.Train(step, leaf) }, h)
		if err != nil {
			return res, failed(step, err)
		}
		took := s.Now().Sub(began)
		res.add(stats, took)
		res.Stopped = stopped(s.Stop) && step < last
		s.Report(Event{Step: step, Steps: last, Loss: stats.Loss, LR: h.LR, Norm: stats.Norm, Skipped: stats.Skipped,
			Tokens: stats.Tokens, Took: took, Left: res.pace(last - step), Last: step == last || res.Stopped})
		if skips++; stats.Skipped == nil {
			skips = 0
		} else if skips == s.MaxSkips {
			return res, &DivergedError{Step: step, Skips: skips, Last: stats.Skipped}
		}
		if step == last || res.Stopped || s.SaveEvery > 0 && step%s.SaveEvery == 0 {
			if err := save(&s, res.At, saved); err != nil {
				return res, err
			}
			saved = step
		}
		if res.Stopped {
			break
		}
		if step == last || s.EvalEvery > 0 && step%s.EvalEvery == 0 {
			if res.ValLoss, err = validate(ctx, w, d, s); err != nil {
				return res, fmt.Errorf("train: validation after step %d: %w", step, err)
			}
			s.Report(Event{Step: step, Steps: last, Loss: res.ValLoss, Validation: true})
		}
	}
	return res, nil
}

// save saves where the run stands, unless the last save was there.
func save(s *Settings, at Position, last int) error {
	if s.Save == nil || at.Step == last {
		return nil
	}
	if err := s.Save(at); err != nil {
		return fmt.Errorf("train: after step %d: %w", at.Step, err)
	}
	return nil
}

// failed says which step it was, unless err does.
func failed(step int, err error) error {
	var op *zero.OpError
	if errors.As(err, &op) && op.Step == step {
		return fmt.Errorf("train: %w", err)
	}
	return fmt.Errorf("train: step %d: %w", step, err)
}

// validate returns the mean loss over the valid tokens of EvalRounds × EvalLeaves held-out leaves.
func validate(ctx context.Context, w World, d Data, s Settings) (float64, error) {
	var sum zero.Loss
	for round := range s.EvalRounds {
		l, err := w.Eval(ctx, func(leaf int) (zero.Batch, error) { return d.Held(round*s.EvalLeaves + leaf) })
		if err != nil {
			return math.NaN(), err
		}
		sum.Sum += l.Sum
		sum.Tokens += l.Tokens
	}
	return sum.Sum / float64(sum.Tokens), nil
}

func (r *Result) add(s zero.Stats, took time.Duration) {
	r.Steps++
	r.At.Step++
	r.At.Tokens += int64(s.Tokens)
	r.Losses = append(r.Losses, s.Loss)
	r.Tokens += int64(s.Tokens)
	r.Time += took
	if s.Skipped != nil {
		r.At.Skipped++
	}
}

// pace is the time that steps more will take, by the mean of those done.
func (r *Result) pace(steps int) time.Duration {
	return r.Time / time.Duration(r.Steps) * time.Duration(steps)
}

func stopped(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
