package cpu_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"zeroshard/device/cpu"
	"zeroshard/kernels"
)

var _ kernels.Pool = (*cpu.Pool)(nil)

// counts counts how often each part ran.
type counts []atomic.Int32

func (c counts) Part(i int) { c[i].Add(1) }

func TestPoolRunsEachPartOnce(t *testing.T) {
	for _, threads := range []int{0, 1, 2, 3, 8} {
		for _, parts := range []int{0, 1, 2, 3, 7, 100} {
			t.Run(fmt.Sprintf("%d threads, %d parts", threads, parts), func(t *testing.T) {
				leaks := goleak.IgnoreCurrent()
				p := cpu.NewPool(threads)
				if p.Threads() != max(threads, 1) {
					t.Errorf("Threads() = %d", p.Threads())
				}
				c := make(counts, parts)
				const runs = 50
				for range runs {
					p.Run(parts, c)
				}
				for i := range c {
					if n := c[i].Load(); n != runs {
						t.Errorf("part %d ran %d times in %d runs", i, n, runs)
					}
				}
				p.Close()
				p.Close()
				goleak.VerifyNone(t, leaks)
			})
		}
	}
}

type taskFunc func(i int)

func (f taskFunc) Part(i int) { f(i) }

// Two parts that wait for each other end only if two threads run them.
func TestPoolRunsPartsAtTheSameTime(t *testing.T) {
	p := cpu.NewPool(2)
	defer p.Close()
	var meet sync.WaitGroup
	meet.Add(2)
	p.Run(2, taskFunc(func(int) { meet.Done(); meet.Wait() }))
}

// Whichever of two parts is slow, one of them runs on the helper.
func TestPoolWaitsForHelpers(t *testing.T) {
	p := cpu.NewPool(2)
	defer p.Close()
	for slow := range 2 {
		var meet sync.WaitGroup
		meet.Add(2)
		var done [2]bool // not atomic: the race detector must see Run's wait
		p.Run(2, taskFunc(func(i int) {
			meet.Done()
			meet.Wait()
			if i == slow {
				time.Sleep(5 * time.Millisecond)
			}
			done[i] = true
		}))
		if done != [2]bool{true, true} {
			t.Errorf("part %d is slow: Run returned with parts done: %v", slow, done)
		}
	}
}

func TestPoolNestedAndConcurrent(t *testing.T) {
	p := cpu.NewPool(3)
	defer p.Close()
	var n atomic.Int32
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			for range 20 {
				p.Run(4, taskFunc(func(int) {
					p.Run(4, taskFunc(func(int) { n.Add(1) }))
				}))
			}
		})
	}
	callers.Wait()
	if n.Load() != 4*20*16 {
		t.Errorf("%d of %d parts ran", n.Load(), 4*20*16)
	}
}

var errPart = errors.New("test: part failed")

func TestPoolPanic(t *testing.T) {
	p := cpu.NewPool(2)
	defer p.Close()
	for part := range 4 {
		t.Run(fmt.Sprint("part ", part), func(t *testing.T) {
			err := recovered(func() {
				p.Run(4, taskFunc(func(i int) {
					if i == part {
						failingPart()
					}
				}))
			})
			var e *cpu.PartError
			if !errors.As(err, &e) || !errors.Is(err, errPart) {
				t.Fatalf("Run panicked with %v, want a *PartError that wraps the value", err)
			}
			if !strings.Contains(err.Error(), "failingPart") {
				t.Errorf("the text has no stack of the part:\n%v", err)
			}
		})
	}
	c := make(counts, 8)
	p.Run(8, c) // still of use
	for i := range c {
		if c[i].Load() != 1 {
			t.Errorf("after a panic part %d ran %d times", i, c[i].Load())
		}
	}
}

func failingPart() { panic(errPart) }

func recovered(f func()) (err error) {
	defer func() { err, _ = recover().(error) }()
	f()
	return nil
}

func TestPoolAllocatesNothing(t *testing.T) {
	p := cpu.NewPool(2)
	defer p.Close()
	var task cpu.Task = make(counts, 16)
	if n := testing.AllocsPerRun(500, func() { p.Run(16, task) }); n != 0 {
		t.Errorf("%v allocations a run, want 0", n)
	}
}

func BenchmarkPool(b *testing.B) {
	p := cpu.NewPool(2)
	defer p.Close()
	var task cpu.Task = make(counts, 2)
	for b.Loop() {
		p.Run(2, task)
	}
}
