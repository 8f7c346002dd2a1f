package devicetest

import (
	"errors"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"zeroshard/device"
)

func streamOrder(t *testing.T, dev device.Device) {
	s := stream(t, dev, "s")
	var got []int
	for i := range 100 {
		s.Do("append", func() error { got = append(got, i); return nil })
	}
	if err := s.Sync(); err != nil {
		t.Fatal(err)
	}
	if len(got) != 100 {
		t.Fatalf("%d of 100 tasks ran", len(got))
	}
	for i, v := range got {
		if v != i {
			t.Fatalf("task %d ran as number %d", v, i)
		}
	}
}

func streamFull(t *testing.T, dev device.Device) {
	s := stream(t, dev, "s")
	task, open := gate()
	s.Do("gate", task)
	const n = 10_000
	ran := 0
	given := make(chan struct{})
	go func() {
		defer close(given)
		for range n {
			s.Do("count", func() error { ran++; return nil })
		}
	}()
	time.Sleep(time.Millisecond) // let the queue fill up; correct without
	open()
	<-given
	if err := s.Sync(); err != nil || ran != n {
		t.Errorf("%d of %d tasks ran, %v", ran, n, err)
	}
}

func streamAsync(t *testing.T, dev device.Device) {
	s := stream(t, dev, "s")
	task, open := gate()
	s.Do("gate", task) // would hang here if Do ran it
	e := s.Record()
	open()
	if err := e.Await(); err != nil {
		t.Error(err)
	}
}

func streamShared(t *testing.T, dev device.Device) {
	s := stream(t, dev, "s")
	ran := 0 // only the stream touches it
	var givers sync.WaitGroup
	for range 4 {
		givers.Go(func() {
			for range 500 {
				s.Do("count", func() error { ran++; return nil })
				s.Record()
			}
			if err := s.Record().Await(); err != nil {
				t.Error(err)
			}
		})
	}
	givers.Wait()
	if ran != 2000 {
		t.Errorf("%d of 2000 tasks ran", ran)
	}
}

func eventZero(t *testing.T, dev device.Device) {
	if err := (device.Event{}).Await(); err != nil {
		t.Errorf("the zero event: %v", err)
	}
	s := stream(t, dev, "s")
	s.Wait(device.Event{})
	if err := s.Record().Await(); err != nil {
		t.Errorf("an empty stream's event: %v", err)
	}
}

func eventOrder(t *testing.T, dev device.Device) {
	a, b := stream(t, dev, "a"), stream(t, dev, "b")
	var got []int
	add := func(i int) func() error { return func() error { got = append(got, i); return nil } }
	for i := 0; i < 100; i += 2 { // without the waits the race detector and the order both fail
		a.Do("a", add(i))
		b.Wait(a.Record())
		b.Do("b", add(i+1))
		a.Wait(b.Record())
	}
	if err := errors.Join(a.Sync(), b.Sync()); err != nil {
		t.Fatal(err)
	}
	for i, v := range got {
		if v != i {
			t.Fatalf("task %d ran as number %d", v, i)
		}
	}
	if len(got) != 100 {
		t.Errorf("%d of 100 tasks ran", len(got))
	}
}

func eventOwn(t *testing.T, dev device.Device) {
	s := stream(t, dev, "s")
	s.Do("first", nothing)
	s.Wait(s.Record())
	s.Do("second", nothing)
	if err := s.Sync(); err != nil {
		t.Error(err)
	}
}

func eventAwait(t *testing.T, dev device.Device) {
	s := stream(t, dev, "s")
	task, open := gate()
	var done atomic.Bool
	early := s.Record()
	s.Do("gate", task)
	s.Do("done", func() error { done.Store(true); return nil })
	late := s.Record()
	if err := early.Await(); err != nil {
		t.Error(err)
	}
	var waiters sync.WaitGroup
	for range 3 {
		waiters.Go(func() {
			if err := late.Await(); err != nil || !done.Load() {
				t.Errorf("awaited before the task was done, or %v", err)
			}
		})
	}
	open()
	waiters.Wait()
}

var errTest = errors.New("test: injected")

func fails() error { return errTest }

func errorSticks(t *testing.T, dev device.Device) {
	s := stream(t, dev, "s")
	s.Do("fails", fails)
	s.Do("skipped", func() error { t.Error("a task ran after an error"); return errors.New("test: second") })
	for range 2 {
		if err := s.Sync(); err != errTest {
			t.Errorf("Sync: %v, want the first error", err)
		}
	}
	s.Do("skipped", func() error { t.Error("a task ran after an error was returned"); return nil })
	if err := s.Record().Await(); err != errTest {
		t.Errorf("Await: %v, want the first error", err)
	}
}

func errorReaches(t *testing.T, dev device.Device) {
	a, b, c := stream(t, dev, "a"), stream(t, dev, "b"), stream(t, dev, "c")
	a.Do("fails", fails)
	b.Wait(a.Record())
	b.Do("skipped", func() error { t.Error("a task ran after a wait for a failed stream"); return nil })
	c.Wait(b.Record())
	if err := c.Sync(); err != errTest {
		t.Errorf("Sync two streams further: %v, want the first error", err)
	}
}

func errorOwn(t *testing.T, dev device.Device) {
	a, b := stream(t, dev, "a"), stream(t, dev, "b")
	own := errors.New("test: own")
	a.Do("fails", fails)
	b.Do("fails", func() error { return own })
	b.Wait(a.Record())
	if err := b.Sync(); err != own {
		t.Errorf("Sync: %v, want the stream's own error, which came first", err)
	}
}

func errorBefore(t *testing.T, dev device.Device) {
	a, b := stream(t, dev, "a"), stream(t, dev, "b")
	a.Do("good", nothing)
	e := a.Record()
	a.Do("fails", fails)
	a.Sync()
	b.Wait(e)
	if err := b.Sync(); err != nil {
		t.Errorf("an event before the error carries it: %v", err)
	}
}

func panicError(t *testing.T, dev device.Device) {
	s := stream(t, dev, "s")
	s.Do("07 compute forward h.0", func() error { panic("bad shape") })
	var p *device.PanicError
	if err := s.Sync(); !errors.As(err, &p) {
		t.Fatalf("Sync: %v, want a *PanicError", err)
	}
	if p.Label != "07 compute forward h.0" || p.Value != "bad shape" {
		t.Errorf("label %q, value %v", p.Label, p.Value)
	}
	if !strings.Contains(string(p.Stack), "panicError") {
		t.Errorf("the stack does not name the function that panicked:\n%s", p.Stack)
	}
}

func panicUnwraps(t *testing.T, dev device.Device) {
	s := stream(t, dev, "s")
	s.Do("panics", func() error { panic(errTest) })
	if err := s.Sync(); !errors.Is(err, errTest) {
		t.Errorf("Sync: %v, want one that wraps the panic's value", err)
	}
}

func goexit(t *testing.T, dev device.Device) {
	s := stream(t, dev, "s")
	s.Do("exits", func() error { runtime.Goexit(); return nil })
	if err := s.Sync(); err == nil || !strings.Contains(err.Error(), `"exits"`) {
		t.Errorf("Sync: %v, want an error that names the task", err)
	}
}
