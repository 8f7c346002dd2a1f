package grouptest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"zeroshard/collectives"
	"zeroshard/device"
)

var errTest = errors.New("test: injected")

func contains(err error, s string) bool { return strings.Contains(err.Error(), s) }

// reduceOnce makes one reduce-scatter of n elements a slot, one leaf a rank, window w of leaves.
func reduceOnce(g collectives.Group, n, leaves int) error {
	f, err := collectives.NewFold(g.Size(), leaves, 1, 0)
	if err != nil {
		return err
	}
	r := collectives.Reduction{Src: zeros(n * g.Size()), Fold: f}
	for range f.Out {
		r.Out = append(r.Out, zeros(n))
	}
	return g.ReduceScatter(context.Background(), nil, r)
}

// odd is the rank that does otherwise.
func (w *world) odd() int { return w.size() - 1 }

// oddCall runs one call on the odd rank and another on the rest, and demands that all ranks name both.
func (w *world) oddCall(odd, rest func(collectives.Group) error, want ...string) {
	w.t.Helper()
	errs := w.each(func(g collectives.Group) error {
		if g.Rank() == w.odd() {
			return odd(g)
		}
		return rest(g)
	})
	w.wantAll(errs, collectives.ErrMismatch, append(want, fmt.Sprintf("rank %d ", w.odd()), "call 1")...)
}

func gatherN(n int) func(collectives.Group) error {
	return func(g collectives.Group) error { return gather(context.Background(), g, n) }
}

func mismatchVerb(w *world) {
	w.oddCall(func(g collectives.Group) error { return reduceOnce(g, 1024, g.Size()) }, gatherN(1024),
		"all-gather of 1024 fp32", "reduce-scatter of 1024 fp32")
}

func mismatchLength(w *world) {
	w.oddCall(gatherN(1024), gatherN(1023), "all-gather of 1024 fp32", "all-gather of 1023 fp32")
}

func mismatchDType(w *world) {
	w.oddCall(func(g collectives.Group) error { return gatherOf(g, 8, func(i int) int32 { return int32(i) }) }, gatherN(8),
		"all-gather of 8 int32", "all-gather of 8 fp32")
}

func mismatchFold(w *world) {
	w.oddCall(
		func(g collectives.Group) error { return reduceOnce(g, 8, 2*g.Size()) },
		func(g collectives.Group) error { return reduceOnce(g, 8, g.Size()) },
		fmt.Sprintf("%d in all", w.size()), fmt.Sprintf("%d in all", 2*w.size()))
}

// mismatchEnds: after the ranks have lost step, no later call can be right.
func mismatchEnds(w *world) {
	mismatchLength(w)
	w.wantAll(w.each(gatherN(4)), collectives.ErrMismatch)
}

// badArguments: one rank's bug must not leave its peers waiting.
func badArguments(w *world) {
	b := zeros(8 * w.size())
	fold, err := collectives.ReplicaFold(w.size())
	other, err2 := collectives.ReplicaFold(w.size() + 1)
	if err := errors.Join(err, err2); err != nil {
		w.t.Fatal(err)
	}
	ints := b
	ints.DType = device.I32
	reduction := func(change func(*collectives.Reduction)) func(collectives.Group) error {
		r := collectives.Reduction{Out: []device.Buffer{zeros(8)}, Src: b, Fold: fold}
		change(&r)
		return func(g collectives.Group) error { return g.ReduceScatter(context.Background(), nil, r) }
	}
	gathering := func(dst, src device.Buffer) func(collectives.Group) error {
		return func(g collectives.Group) error { return g.AllGather(context.Background(), nil, dst, src) }
	}
	own := w.odd() * 8
	call := map[string]func(collectives.Group) error{
		"gather: short destination":      gathering(b, zeros(9)),
		"gather: dtypes":                 gathering(ints, zeros(8)),
		"gather: source elsewhere in it": gathering(zerosAround(w.size())),
		"reduce: no fold":                reduction(func(r *collectives.Reduction) { r.Fold = nil }),
		"reduce: fold of another size":   reduction(func(r *collectives.Reduction) { r.Fold = other }),
		"reduce: no slot":                reduction(func(r *collectives.Reduction) { r.Out = nil }),
		"reduce: carry without need":     reduction(func(r *collectives.Reduction) { r.In = r.Out }),
		"reduce: short source":           reduction(func(r *collectives.Reduction) { r.Src = b.Slice(0, 8*w.size()-1) }),
		"reduce: no source":              reduction(func(r *collectives.Reduction) { r.Src = device.Buffer{} }),
		"reduce: dtype":                  reduction(func(r *collectives.Reduction) { r.Src = ints }),
		"reduce: dtype of the slot":      reduction(func(r *collectives.Reduction) { r.Out = []device.Buffer{ints.Slice(0, 8)} }),
	}
	if w.size() > 1 { // with one rank every slice is its own
		call["reduce: into a peer's slice"] = reduction(func(r *collectives.Reduction) { r.Out = []device.Buffer{b.Slice(own-8, own)} })
	}
	w.badCalls(call)
}

// zerosAround is a destination and a source that overlaps it off any place.
func zerosAround(size int) (dst, src device.Buffer) {
	b := zeros(8*size + 1)
	return b.Slice(0, 8*size), b.Slice(8*size-7, 8*size+1)
}

// badCalls shows that each call fails where it is made, and that a group with such a rank fails everywhere: first on the rank itself.
func (w *world) badCalls(calls map[string]func(collectives.Group) error) {
	w.t.Helper()
	first := true
	for name, call := range calls {
		errs := w.each(func(g collectives.Group) error {
			if g.Rank() == w.odd() {
				return call(g)
			}
			return gather(context.Background(), g, 8)
		})
		var abort *collectives.AbortError
		for r, err := range errs {
			if !errors.Is(err, collectives.ErrArgument) {
				w.t.Errorf("%s: rank %d: %v, want ErrArgument", name, r, err)
			}
			if r != w.odd() && (!errors.As(err, &abort) || abort.Rank != w.odd()) {
				w.t.Errorf("%s: rank %d: %v, want an *AbortError of rank %d", name, r, err, w.odd())
			}
		}
		if err := errs[w.odd()]; first && errors.As(err, &abort) {
			w.t.Errorf("%s: rank %d: %v, want the error itself", name, w.odd(), err)
		}
		first = false
	}
}

// abortWaiting: all ranks but one wait, the last one gives up.
func abortWaiting(w *world) {
	w.checkAborted(w.each(func(g collectives.Group) error {
		if g.Rank() == w.odd() {
			time.Sleep(2 * time.Millisecond) // so that the others park; correct without
			g.Abort(errTest)
		}
		return gather(context.Background(), g, 16)
	}), w.odd(), errTest)
}

func abortBefore(w *world) {
	w.all(gatherN(4))
	w.groups[w.odd()].Abort(errTest)
	for range 2 {
		w.checkAborted(w.each(gatherN(4)), w.odd(), errTest)
	}
	for _, g := range w.groups {
		if err := reduceOnce(g, 8, g.Size()); !errors.Is(err, errTest) {
			w.t.Errorf("rank %d: reduce-scatter after an abort: %v", g.Rank(), err)
		}
	}
}

func abortTwice(w *world) {
	w.groups[w.odd()].Abort(errTest)
	w.groups[0].Abort(errors.New("test: second"))
	w.checkAborted(w.each(gatherN(4)), w.odd(), errTest)
}

func (w *world) checkAborted(errs []error, rank int, cause error) {
	w.t.Helper()
	for r, err := range errs {
		var a *collectives.AbortError
		if !errors.As(err, &a) || a.Rank != rank || !errors.Is(err, cause) {
			w.t.Errorf("rank %d: %v, want an *AbortError of rank %d for %v", r, err, rank, cause)
		}
	}
}

// cancelWaiting: rank 0's context ends while it waits for the odd rank, which comes too late.
func cancelWaiting(w *world) {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	var waiting atomic.Int32
	w.checkAborted(w.each(func(g collectives.Group) error {
		switch g.Rank() {
		case w.odd():
			for int(waiting.Load()) < w.size()-1 {
				time.Sleep(time.Millisecond)
			}
			cancel(errTest)
			<-ctx.Done()
			time.Sleep(5 * time.Millisecond)
			return gather(ctx, g, 16)
		case 0:
			waiting.Add(1)
			return gather(ctx, g, 16)
		default:
			waiting.Add(1)
			return gather(context.Background(), g, 16)
		}
	})[:1], 0, errTest)
	w.wantAll(w.each(gatherN(4)), errTest)
}

func cancelBefore(w *world) {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errTest)
	w.checkAborted(w.each(func(g collectives.Group) error {
		if g.Rank() == w.odd() {
			return gather(ctx, g, 4)
		}
		return gather(context.Background(), g, 4)
	}), w.odd(), errTest)
}

// closePeers: a rank that ended must not be waited for, neither now nor later.
func closePeers(w *world) {
	errs := w.each(func(g collectives.Group) error {
		if g.Rank() == w.odd() {
			return g.Close()
		}
		return errors.Join(gather(context.Background(), g, 16), gather(context.Background(), g, 16))
	})
	w.checkAborted(errs[:w.odd()], w.odd(), collectives.ErrClosed)
}

// closeLast: to close right after the last call must not spoil it for slower peers.
func closeLast(w *world) {
	w.all(func(g collectives.Group) error {
		return errors.Join(gather(context.Background(), g, 1000), reduceOnce(g, 1000, g.Size()), g.Close())
	})
}

func closeOwn(w *world) {
	w.all(func(g collectives.Group) error { return errors.Join(g.Close(), g.Close()) })
	w.wantAll(w.each(gatherN(4)), collectives.ErrClosed)
}

// lateRank: a rank that comes 50 ms later is waited for.
func lateRank(w *world) {
	leaves := w.leaves(w.size(), 4)
	w.all(func(g collectives.Group) error {
		if g.Rank() == w.odd() {
			time.Sleep(50 * time.Millisecond)
		}
		return gather(context.Background(), g, 16)
	})
	w.check(step{window: 1, leaves: leaves})
}

// unequalCounts: rank 0 has one batch less and leaves; the others must learn it, not spin.
func unequalCounts(w *world) {
	w.checkAborted(w.each(func(g collectives.Group) error {
		batches := 4
		if g.Rank() == 0 {
			batches = 3
		}
		for range batches {
			if err := gather(context.Background(), g, 16); err != nil {
				return err
			}
		}
		return g.Close()
	})[1:], 0, collectives.ErrClosed)
}

// rankDependentFlow: the odd rank skips a flat that the others gather; the lengths tell, and everyone names it.
func rankDependentFlow(w *world) {
	errs := w.each(func(g collectives.Group) error {
		for i, n := range []int{128, 256, 384} {
			if i == 1 && g.Rank() == w.odd() {
				continue
			}
			if err := gather(context.Background(), g, n); err != nil {
				return err
			}
		}
		return nil
	})
	w.wantAll(errs, collectives.ErrMismatch, "call 2", "all-gather of 256", "all-gather of 384", fmt.Sprintf("rank %d ", w.odd()))
}

// sharedDecision: ranks with different losses decide alike when they decide on what they gathered.
func sharedDecision(w *world) {
	best := make([]int, w.size())
	w.all(func(g collectives.Group) error {
		losses := make([]float64, g.Size())
		mine := []float64{float64((g.Rank()*7 + 3) % g.Size())}
		if err := g.AllGather(context.Background(), nil, device.Host(losses), device.Host(mine)); err != nil {
			return err
		}
		for r, l := range losses {
			if l < losses[best[g.Rank()]] {
				best[g.Rank()] = r
			}
		}
		return nil
	})
	for r, b := range best {
		if b != best[0] {
			w.t.Errorf("rank %d found rank %d best, rank 0 found %d", r, b, best[0])
		}
	}
}
