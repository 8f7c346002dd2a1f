package grouptest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"zeroshard/collectives"
	"zeroshard/device"
)

// Open returns the ends of a new group of size ranks, by rank, whose reductions run through a Plain or something equal to it.
type Open func(t testing.TB, size int) []collectives.Group

// Run tests the groups that open returns, of several sizes. Buffers are host memory and streams are nil. The suite closes every
// end, and demands that no goroutine is left then.
func Run(t *testing.T, open Open) {
	t.Helper()
	for _, size := range []int{1, 2, 3, 5, 8} {
		for _, c := range cases {
			t.Run(fmt.Sprintf("%d ranks/%s", size, c.name), func(t *testing.T) {
				if size < c.ranks {
					t.Skipf("needs %d ranks", c.ranks)
				}
				leaks := goleak.IgnoreCurrent()
				w := &world{t: t, groups: open(t, size)}
				c.run(w)
				for _, g := range w.groups {
					if err := g.Close(); err != nil {
						t.Errorf("rank %d: Close: %v", g.Rank(), err)
					}
				}
				goleak.VerifyNone(t, leaks)
			})
		}
	}
}

var cases = []struct {
	name  string
	ranks int // at least
	run   func(*world)
}{
	{"ranks and sizes", 1, ranksAndSizes},
	{"gather/dtypes and lengths", 1, gatherLengths},
	{"gather/in place", 1, gatherInPlace},
	{"gather/only serving", 1, gatherServing},
	{"gather/source may be overwritten at once", 1, gatherReuse},
	{"reduce/is the tree to the bit", 1, reduceTree},
	{"reduce/into the own slice", 1, reduceInPlace},
	{"reduce/empty", 1, reduceEmpty},
	{"reduce/longer than a chunk", 1, reduceLong},
	{"both/mixed", 1, mixed},
	{"counting", 1, counting},
	{"mismatch/verb", 2, mismatchVerb},
	{"mismatch/length", 2, mismatchLength},
	{"mismatch/dtype", 2, mismatchDType},
	{"mismatch/fold", 2, mismatchFold},
	{"mismatch/ends the group", 2, mismatchEnds},
	{"argument/is an error everywhere", 1, badArguments},
	{"abort/while waiting", 2, abortWaiting},
	{"abort/before", 1, abortBefore},
	{"abort/first cause stays", 2, abortTwice},
	{"context/cancelled while waiting", 2, cancelWaiting},
	{"context/cancelled before", 1, cancelBefore},
	{"close/peers do not wait", 2, closePeers},
	{"close/after the last call", 1, closeLast},
	{"close/own calls and twice", 1, closeOwn},
	{"late rank", 2, lateRank},
	{"row 50: unequal batch counts", 2, unequalCounts},
	{"row 51: control flow that depends on the rank", 2, rankDependentFlow},
	{"row 52: a decision is the same on all ranks", 1, sharedDecision},
}

// Plain is the folder of the suite: one loop, each sum rounded once.
type Plain struct{}

// Add sets dst = a + b.
func (Plain) Add(_ device.Stream, dst, a, b device.Buffer) {
	d, x, y := dst.Float32s(), a.Float32s(), b.Float32s()
	for i := range d {
		d[i] = x[i] + y[i]
	}
}

// world is the ranks of one test.
type world struct {
	t      *testing.T
	groups []collectives.Group
}

func (w *world) size() int { return len(w.groups) }

// hang is far beyond what any case takes.
const hang = 30 * time.Second

// each runs f for every rank on a goroutine of its own and returns the errors by rank. A hang ends the test binary with the stacks of
// all goroutines.
func (w *world) each(f func(g collectives.Group) error) []error {
	w.t.Helper()
	errs := make([]error, w.size())
	var ranks errgroup.Group
	for r, g := range w.groups {
		ranks.Go(func() error {
			errs[r] = f(g)
			return nil
		})
	}
	timer := time.AfterFunc(hang, func() {
		buf := make([]byte, 1<<20)
		panic(fmt.Sprintf("%s hangs:\n%s", w.t.Name(), buf[:runtime.Stack(buf, true)]))
	})
	defer timer.Stop()
	if err := ranks.Wait(); err != nil {
		w.t.Error(err)
	}
	return errs
}

// all is each for calls that must succeed.
func (w *world) all(f func(g collectives.Group) error) {
	w.t.Helper()
	for r, err := range w.each(f) {
		if err != nil {
			w.t.Errorf("rank %d: %v", r, err)
		}
	}
	if w.t.Failed() {
		w.t.FailNow()
	}
}

// wantAll demands that every error is target, and says all that want lists.
func (w *world) wantAll(errs []error, target error, want ...string) {
	w.t.Helper()
	for r, err := range errs {
		w.want(r, err, target, want...)
	}
}

func (w *world) want(rank int, err, target error, want ...string) {
	w.t.Helper()
	if !errors.Is(err, target) {
		w.t.Errorf("rank %d: %v, want %v", rank, err, target)
		return
	}
	for _, s := range want {
		if !contains(err, s) {
			w.t.Errorf("rank %d: %q does not say %q", rank, err, s)
		}
	}
}

// gather is a call that all ranks can make: n fp32 each.
func gather(ctx context.Context, g collectives.Group, n int) error {
	dst, src := make([]float32, n*g.Size()), make([]float32, n)
	for i := range src {
		src[i] = float32(g.Rank()*1000 + i)
	}
	if err := g.AllGather(ctx, nil, device.Host(dst), device.Host(src)); err != nil {
		return err
	}
	for i, v := range dst {
		if v != float32(i/n*1000+i%n) {
			return fmt.Errorf("test: element %d of the gathered is %v", i, v)
		}
	}
	return nil
}
