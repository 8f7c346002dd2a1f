package inproc_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"zeroshard/collectives"
	"zeroshard/collectives/grouptest"
	"zeroshard/collectives/inproc"
	"zeroshard/device"
	"zeroshard/device/cpu"
	"zeroshard/device/null"
)

func open(t testing.TB, size int) []collectives.Group {
	t.Helper()
	groups, err := inproc.New(size, func(int) collectives.Folder { return grouptest.Plain{} })
	if err != nil {
		t.Fatal(err)
	}
	return groups
}

func TestGroup(t *testing.T) { grouptest.Run(t, open) }

// Group as the engine uses it: through the counter.
func TestCounted(t *testing.T) {
	grouptest.Run(t, func(t testing.TB, size int) []collectives.Group {
		groups := open(t, size)
		for r, g := range groups {
			groups[r] = collectives.Counting(g)
		}
		return groups
	})
}

func TestNewRefuses(t *testing.T) {
	plain := func(int) collectives.Folder { return grouptest.Plain{} }
	if _, err := inproc.New(0, plain); !errors.Is(err, collectives.ErrArgument) {
		t.Errorf("no ranks: %v", err)
	}
	if _, err := inproc.New(2, nil); !errors.Is(err, collectives.ErrArgument) {
		t.Errorf("no folder: %v", err)
	}
}

// ranks runs f for each rank on a goroutine of its own; the first error aborts the group.
func ranks(t testing.TB, groups []collectives.Group, f func(g collectives.Group) error) {
	t.Helper()
	var eg errgroup.Group
	for _, g := range groups {
		eg.Go(func() error {
			err := f(g)
			if err != nil {
				g.Abort(err)
			}
			return err
		})
	}
	if err := eg.Wait(); err != nil {
		t.Error(err)
	}
}

// A step's buffers: one reduction and one gather of n elements a rank.
type buffers struct {
	full, slice device.Buffer
	red         collectives.Reduction
}

func newBuffers(t testing.TB, dev device.Device, size, n int) buffers {
	t.Helper()
	alloc := func(n int) device.Buffer {
		m, err := dev.Alloc(int64(4 * n))
		if err != nil {
			t.Fatal(err)
		}
		return device.Buffer{Mem: m, Len: n, DType: device.F32}
	}
	f, err := collectives.ReplicaFold(size)
	if err != nil {
		t.Fatal(err)
	}
	b := buffers{full: alloc(size * n), slice: alloc(n)}
	b.red = collectives.Reduction{Out: []device.Buffer{b.slice}, Src: b.full, Fold: f}
	return b
}

func (b *buffers) step(ctx context.Context, g collectives.Group) error {
	if err := g.ReduceScatter(ctx, nil, b.red); err != nil {
		return err
	}
	return g.AllGather(ctx, nil, b.full, b.slice)
}

// Pieces are whole where they are moved in parts, through the caches and past them.
func TestLargePieces(t *testing.T) {
	ctx := context.Background()
	for _, n := range []int{1 << 16, 1<<16 + 1, 3<<16 - 1, 1 << 20, 1<<20 + 5} { // up to 4 MiB, of 8 MiB that are gathered, and past that
		ranks(t, open(t, 2), func(g collectives.Group) error {
			full, own := make([]float32, 2*n), make([]float32, n)
			for i := range own {
				own[i] = float32(g.Rank()*n + i + 1)
			}
			if err := g.AllGather(ctx, nil, device.Host(full), device.Host(own)); err != nil {
				return err
			}
			for i, v := range full {
				if v != float32(i+1) {
					return fmt.Errorf("rank %d: element %d of 2·%d is %v", g.Rank(), i, n, v)
				}
			}
			return nil
		})
	}
}

func TestCallsAllocateNothing(t *testing.T) {
	for _, size := range []int{1, 2, 3, 8} {
		t.Run(fmt.Sprint(size, " ranks"), func(t *testing.T) {
			dev := cpu.New(cpu.Options{})
			defer dev.Close()
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			const runs = 100
			// AllocsPerRun calls runs+1 times on rank 0 and counts the allocations of all goroutines.
			ranks(t, open(t, size), func(g collectives.Group) error {
				b := newBuffers(t, dev, size, 100)
				for range 10 { // the first call makes temporaries
					if err := b.step(ctx, g); err != nil {
						return err
					}
				}
				if g.Rank() > 0 {
					for range runs + 1 {
						if err := b.step(ctx, g); err != nil {
							return err
						}
					}
					return nil
				}
				var err error
				n := testing.AllocsPerRun(runs, func() { err = errors.Join(err, b.step(ctx, g)) })
				if n != 0 {
					t.Errorf("%v allocations a step, want 0", n)
				}
				return err
			})
		})
	}
}

// On memory without bytes the ranks meet and agree, and nothing moves.
func TestNullDevice(t *testing.T) {
	dev := null.New()
	defer dev.Close()
	const size, n = 3, 1 << 33
	groups := open(t, size)
	ranks(t, groups, func(g collectives.Group) error {
		b := newBuffers(t, dev, size, n)
		c := collectives.Counting(g)
		if err := b.step(context.Background(), c); err != nil {
			return err
		}
		if want := [2]int64{2 * n * 4, 2 * n * 4}; c.Sent() != want {
			t.Errorf("rank %d sent %v, want %v", g.Rank(), c.Sent(), want)
		}
		return nil
	})
	errs := make([]error, size)
	var eg errgroup.Group
	for r, g := range groups {
		eg.Go(func() error {
			b := newBuffers(t, dev, size, n+r%2)
			errs[r] = b.step(context.Background(), g)
			return nil
		})
	}
	eg.Wait()
	for r, err := range errs {
		if !errors.Is(err, collectives.ErrMismatch) {
			t.Errorf("rank %d: %v, want ErrMismatch on a null device too", r, err)
		}
	}
}

// As soon as a call returns with an error a rank gives its memory back to the operating system. A peer that still read it would
// die of a memory fault.
func TestNobodyReadsAfterAnError(t *testing.T) {
	const size, n, rounds = 4, 1 << 12, 60
	injected := errors.New("test: injected")
	for round := range rounds {
		rng := rand.New(rand.NewPCG(7, uint64(round)))
		groups := open(t, size)
		culprit, after, split := rng.IntN(size), rng.IntN(20), time.Duration(rng.IntN(50))*time.Microsecond
		var eg errgroup.Group
		for r, g := range groups {
			eg.Go(func() error {
				dev := cpu.New(cpu.Options{})
				b := newBuffers(t, dev, size, n)
				if r == culprit && after%2 == 0 { // from outside, at any moment
					eg.Go(func() error { time.Sleep(split); g.Abort(injected); return nil })
				}
				for i := 0; ; i++ {
					if r == culprit && i == after && after%2 == 1 { // between two calls
						g.Abort(injected)
					}
					if err := b.step(context.Background(), g); err != nil {
						if !errors.Is(err, injected) {
							t.Errorf("rank %d: %v", r, err)
						}
						return dev.Close()
					}
				}
			})
		}
		if err := eg.Wait(); err != nil {
			t.Error(err)
		}
	}
}

// panicking is a folder with a bug.
type panicking struct{}

func (panicking) Add(device.Stream, device.Buffer, device.Buffer, device.Buffer) { panic("bug") }

// A panic in one rank's arithmetic is that rank's; the peers' calls end.
func TestFolderPanics(t *testing.T) {
	const size, bad = 3, 1
	groups, err := inproc.New(size, func(rank int) collectives.Folder {
		if rank == bad {
			return panicking{}
		}
		return grouptest.Plain{}
	})
	if err != nil {
		t.Fatal(err)
	}
	dev := cpu.New(cpu.Options{})
	defer dev.Close()
	ranks(t, groups, func(g collectives.Group) (err error) {
		defer func() {
			if v := recover(); (v != nil) != (g.Rank() == bad) {
				t.Errorf("rank %d: panic %v", g.Rank(), v)
			}
		}()
		b := newBuffers(t, dev, size, 10)
		return g.ReduceScatter(context.Background(), nil, b.red)
	})
}

func TestTwoCallsAtOnce(t *testing.T) {
	groups := open(t, 2)
	errs := make(chan error, 2)
	dev := cpu.New(cpu.Options{})
	defer dev.Close()
	for range 2 {
		go func() {
			b := newBuffers(t, dev, 2, 10)
			errs <- groups[0].AllGather(context.Background(), nil, b.full, b.slice)
		}()
	}
	if err := <-errs; !errors.Is(err, collectives.ErrArgument) { // the other one waits for rank 1
		t.Errorf("the second call: %v, want ErrArgument", err)
	}
	b := newBuffers(t, dev, 2, 10)
	if err := errors.Join(groups[1].AllGather(context.Background(), nil, b.full, b.slice), <-errs); err != nil {
		t.Errorf("the first call: %v", err)
	}
}

func BenchmarkRendezvous(b *testing.B) {
	for _, size := range []int{2, 4, 8} {
		b.Run(fmt.Sprint(size, " ranks"), func(b *testing.B) { benchmark(b, size, 1) })
	}
}

func BenchmarkStep(b *testing.B) {
	for _, n := range []int{1 << 10, 1 << 16, 1 << 20} {
		for _, size := range []int{2, 3, 8} {
			b.Run(fmt.Sprintf("%d ranks, %d elements", size, n), func(b *testing.B) {
				b.SetBytes(int64(2 * 4 * n * (size - 1)))
				benchmark(b, size, n/size)
			})
		}
	}
}

func benchmark(b *testing.B, size, n int) {
	dev := cpu.New(cpu.Options{})
	defer dev.Close()
	groups := open(b, size)
	steps := b.N
	b.ResetTimer()
	ranks(b, groups, func(g collectives.Group) error {
		buf := newBuffers(b, dev, size, n)
		for range steps {
			if err := buf.step(context.Background(), g); err != nil {
				return err
			}
		}
		return nil
	})
}
