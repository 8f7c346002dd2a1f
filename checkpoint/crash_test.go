package checkpoint_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"zeroshard/checkpoint"
	"zeroshard/checkpoint/crashfs"
)

const (
	crashDir   = "runs/a/checkpoints"
	crashSteps = 4
	crashKeep  = 2
)

// stride is 1: every operation. In short tests only some are tried.
func stride() int {
	if testing.Short() {
		return 5
	}
	return 1
}

// saveAll is a run that saves steps from first on: ranks one after the other, so that operations have an order. It returns the last step
// whose save returned without an error.
func saveAll(f *crashfs.FS, first int) (last int, err error) {
	s := checkpoint.NewStore(f, crashDir)
	if err := s.Clean(); err != nil {
		return first - 1, err
	}
	for step := first; step <= crashSteps; step++ {
		v, err := s.Begin(small.manifest(step))
		if err != nil {
			return step - 1, err
		}
		var entries []checkpoint.Entry
		for r, src := range small.sources(step, 3) {
			e, err := v.Rank(r, src)
			if err != nil {
				return step - 1, errors.Join(err, v.Abort())
			}
			entries = append(entries, e)
		}
		if err := v.Commit(entries); err != nil {
			return step - 1, err
		}
		if _, err := s.Prune(crashKeep); err != nil {
			return step, err
		}
	}
	return crashSteps, nil
}

// TestEveryPoint stops or fails a run at every operation that it makes on the disk, in every way, and demands of what is found
// afterwards: each step whose save had returned is there; the newest committed step is whole, with the bytes that it was saved with; and
// a run that goes on from it ends as if nothing had happened, with nothing left over.
//
// These are rows 36 (a file cut short is loaded), 37 (a folder without its manifest is taken for the newest, pruning removes the last good
// step), 38 (half a step in its place, half in a temporary one) and 39 (latest is written before all have saved) of the reports from the field.
func TestEveryPoint(t *testing.T) {
	clean := &crashfs.FS{}
	if _, err := saveAll(clean, 1); err != nil {
		t.Fatal(err)
	}
	ops := clean.Ops()
	type fault struct {
		crashfs.Fault
		err  error
		loss []crashfs.Loss
	}
	faults := []fault{
		{crashfs.Stop, nil, crashfs.Losses()},
		{crashfs.Fail, syscall.ENOSPC, []crashfs.Loss{crashfs.Nothing}},
		{crashfs.Fail, syscall.EIO, []crashfs.Loss{crashfs.Nothing, crashfs.All}},
		{crashfs.Short, syscall.ENOSPC, []crashfs.Loss{crashfs.Nothing}},
		{crashfs.Short, nil, []crashfs.Loss{crashfs.Nothing}},
	}
	points := 0
	for at := 1; at <= len(ops); at += stride() {
		for _, ft := range faults {
			if ft.Fault == crashfs.Short && !strings.HasPrefix(ops[at-1], "write") {
				continue
			}
			for _, loss := range ft.loss {
				points++
				f := &crashfs.FS{At: at, Fault: ft.Fault, Err: ft.err}
				saved, err := saveAll(f, 1)
				if err == nil {
					t.Fatalf("%s: fault %v %v went unnoticed", ops[at-1], ft.Fault, ft.err)
				}
				if err := recovers(t, f.Restart(loss), saved); err != nil {
					t.Fatalf("%v %v at operation %d, %s, losing %v: %v", ft.Fault, ft.err, at, ops[at-1], loss, err)
				}
			}
		}
	}
	t.Logf("%d operations, %d points", len(ops), points)
	if points < 500 && !testing.Short() {
		t.Errorf("%d points are fewer than 500", points)
	}
}

func recovers(t *testing.T, f *crashfs.FS, saved int) error {
	s := checkpoint.NewStore(f, crashDir)
	steps, err := s.Verify()
	if err != nil {
		return err
	}
	newest := 0
	if len(steps) > 0 {
		newest = steps[len(steps)-1]
		step, err := s.Open(newest)
		if err != nil {
			return err
		}
		small.check(t, step)
		if err := step.Close(); err != nil {
			return err
		}
	}
	if newest < saved {
		return fmt.Errorf("the save of step %d had returned, the newest step is %d", saved, newest)
	}
	if _, err := saveAll(f, newest+1); err != nil {
		return fmt.Errorf("going on from step %d: %w", newest, err)
	}
	if err := s.Clean(); err != nil {
		return err
	}
	if _, err := s.Prune(crashKeep); err != nil {
		return err
	}
	steps, err = s.Verify()
	if err == nil && !slices.Equal(steps, []int{crashSteps - 1, crashSteps}) {
		err = fmt.Errorf("at the end there are steps %v", steps)
	}
	rest, _ := s.Leftovers()
	if len(rest) > 0 {
		err = errors.Join(err, fmt.Errorf("left over: %v", rest))
	}
	return err
}

// TestGoingBackAtEveryPoint is TestEveryPoint for a run that goes back behind saved steps and writes them anew: whatever is found afterwards
// is sound, and a later start goes on from where the run was before, or from where it went back to, never from between.
func TestGoingBackAtEveryPoint(t *testing.T) {
	back := func(f *crashfs.FS) error {
		s := checkpoint.NewStore(f, crashDir)
		if err := s.Clean(); err != nil {
			return err
		}
		if _, err := s.Supersede(1); err != nil {
			return err
		}
		_, err := saveAll(f, 2)
		return err
	}
	const old = 7 // the seed of the steps that are set aside
	start := func() *crashfs.FS {
		f := &crashfs.FS{}
		s := checkpoint.NewStore(f, crashDir)
		for step := 1; step <= crashSteps; step++ {
			m := small.manifest(step)
			m.Seed = old
			if err := s.Save(m, small.sources(step, 1)); err != nil {
				t.Fatal(err)
			}
		}
		return f.Restart(crashfs.All)
	}
	clean := start()
	if err := back(clean); err != nil {
		t.Fatal(err)
	}
	ops := clean.Ops()
	for at := 1; at <= len(ops); at += stride() {
		for _, err := range []error{syscall.EIO, syscall.ENOSPC} { // the process lives on, fails, and starts anew
			f := start()
			f.At, f.Fault, f.Err = at, crashfs.Fail, err
			if err := back(f); err == nil {
				t.Fatalf("%v at operation %d, %s, went unnoticed", f.Err, at, ops[at-1])
			}
			if err := recovers(t, f.Restart(crashfs.Nothing), 1); err != nil {
				t.Fatalf("%v at operation %d, %s: %v", f.Err, at, ops[at-1], err)
			}
		}
		for _, loss := range crashfs.Losses() {
			f := start()
			f.At, f.Fault = at, crashfs.Stop
			if err := back(f); err == nil {
				t.Fatalf("a stop at operation %d went unnoticed", at)
			}
			after := f.Restart(loss)
			s := checkpoint.NewStore(after, crashDir)
			newest, err := s.Newest()
			if err != nil {
				t.Fatal(err)
			}
			m, err := checkpoint.ReadManifest(after, s.StepDir(newest))
			if err != nil || m.Seed == old && newest != 1 && newest != crashSteps {
				t.Fatalf("stopped at operation %d, %s, losing %v: the newest step is %d, which was being set aside (%v)", at, ops[at-1], loss, newest, err)
			}
			if err := recovers(t, after, 1); err != nil {
				t.Fatalf("stopped at operation %d, %s, losing %v: %v", at, ops[at-1], loss, err)
			}
		}
	}
}

// TestStopWhileAsync stops the saver, whose ranks write at the same time, at every operation: no order is fixed, the promise is the same.
func TestStopWhileAsync(t *testing.T) {
	run := func(f *crashfs.FS) (told []int, err error) {
		saver := checkpoint.NewSaver(checkpoint.NewStore(f, crashDir), crashKeep, func(step int) { told = append(told, step) })
		for step := 1; step <= crashSteps && err == nil; step++ {
			err = saver.Save(small.manifest(step), small.sources(step, 3))
		}
		return told, errors.Join(err, saver.Close())
	}
	clean := &crashfs.FS{}
	if told, err := run(clean); err != nil || !slices.Equal(told, []int{1, 2, 3, 4}) {
		t.Fatal(told, err)
	}
	for at := 1; at <= len(clean.Ops()); at += stride() {
		f := &crashfs.FS{At: at, Fault: crashfs.Stop}
		told, err := run(f)
		if err == nil {
			t.Fatalf("a stop at operation %d went unnoticed", at)
		}
		last := 0
		if len(told) > 0 {
			last = told[len(told)-1]
		}
		for _, loss := range crashfs.Losses() {
			if err := recovers(t, f.Restart(loss), last); err != nil {
				t.Fatalf("stopped at operation %d, losing %v: %v", at, loss, err)
			}
		}
	}
}
