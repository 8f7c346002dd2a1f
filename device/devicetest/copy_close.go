package devicetest

import (
	"errors"
	"slices"
	"testing"
	"time"

	"zeroshard/device"
)

func copyRoundTrip(t *testing.T, dev device.Device) {
	s := stream(t, dev, "s")
	in, out := []float32{1, 2, 3, 4, 5}, make([]float32, 3)
	a, b := floats(t, dev, 8), floats(t, dev, 8)
	err := errors.Join(
		dev.Copy(s, a.Slice(2, 7), device.Host(in)),
		dev.Copy(s, b, a),
		dev.Copy(s, device.Host(out), b.Slice(3, 6)),
		dev.Copy(s, a.Slice(4, 4), device.Buffer{}), // empty
		s.Sync())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(out, []float32{2, 3, 4}) {
		t.Errorf("got %v back", out)
	}
}

func copyOrder(t *testing.T, dev device.Device) {
	s := stream(t, dev, "s")
	v, w := []float32{1}, []float32{0}
	task, open := gate()
	s.Do("gate", task)
	if err := dev.Copy(s, device.Host(w), device.Host(v)); err != nil {
		t.Fatal(err)
	}
	v[0] = 2 // the copy has not begun
	open()
	if err := s.Sync(); err != nil || w[0] != 2 {
		t.Errorf("copied %v, %v: not in the stream's order", w[0], err)
	}
}

func copyRefused(t *testing.T, dev device.Device) {
	s := stream(t, dev, "s")
	b := floats(t, dev, 4)
	if err := dev.Copy(s, b, b.Slice(0, 3)); !errors.Is(err, device.ErrArgument) {
		t.Errorf("copy of 3 elements to 4: %v, want ErrArgument", err)
	}
	i := b
	i.DType = device.I32
	if err := dev.Copy(s, b, i); !errors.Is(err, device.ErrArgument) {
		t.Errorf("copy of int32 to fp32: %v, want ErrArgument", err)
	}
	if err := s.Sync(); err != nil {
		t.Errorf("a refused copy failed the stream: %v", err)
	}
}

// hold starts a task on s that ends when release is called, and waits until it runs.
func hold(s device.Stream) (release func()) {
	running, end := make(chan struct{}), make(chan struct{})
	s.Do("held", func() error { close(running); <-end; return nil })
	<-running
	return func() { close(end) }
}

// closing calls dev.Close on a goroutine of its own.
func closing(dev device.Device) (wait func() error) {
	c := make(chan error, 1)
	go func() { c <- dev.Close() }()
	time.Sleep(time.Millisecond) // more likely to meet the waiters below; correct without
	return func() error { return <-c }
}

func closeSkips(t *testing.T, dev device.Device) {
	s := stream(t, dev, "s")
	release := hold(s)
	ran := make(chan struct{}, 1)
	s.Do("pending", func() error { ran <- struct{}{}; return nil })
	wait := closing(dev)
	for s.Record(); ; { // Close must have marked the stream before the held task ends
		if _, err := dev.NewStream("probe"); errors.Is(err, device.ErrClosed) {
			break
		}
	}
	time.Sleep(5 * time.Millisecond)
	release()
	if err := wait(); err != nil {
		t.Error(err)
	}
	select {
	case <-ran:
		t.Error("a pending task ran after Close")
	default:
	}
	if err := s.Sync(); !errors.Is(err, device.ErrClosed) {
		t.Errorf("Sync: %v, want ErrClosed", err)
	}
}

func closeWakes(t *testing.T, dev device.Device) {
	s := stream(t, dev, "s")
	release := hold(s)
	s.Do("pending", nothing)
	e, errs := s.Record(), make(chan error, 1)
	go func() { errs <- e.Await() }()
	wait := closing(dev)
	release()
	if err := errors.Join(wait(), <-errs); err != nil && !errors.Is(err, device.ErrClosed) {
		t.Errorf("Close or Await: %v", err)
	}
	if err := e.Await(); err != nil && !errors.Is(err, device.ErrClosed) {
		t.Errorf("Await of a closed stream's event: %v", err)
	}
}

func closeFull(t *testing.T, dev device.Device) {
	s := stream(t, dev, "s")
	release := hold(s)
	given := make(chan struct{})
	go func() {
		defer close(given)
		for range 5000 { // more than the queue holds: blocks until Close
			s.Do("pending", nothing)
		}
	}()
	wait := closing(dev)
	release()
	<-given
	if err := wait(); err != nil {
		t.Error(err)
	}
	if err := s.Record().Await(); !errors.Is(err, device.ErrClosed) {
		t.Errorf("an event after dropped tasks: %v, want ErrClosed", err)
	}
}

func closeRefuses(t *testing.T, dev device.Device) {
	s := stream(t, dev, "s")
	m, err := dev.Alloc(64)
	if err != nil {
		t.Fatal(err)
	}
	if err := dev.Close(); err != nil {
		t.Fatal(err)
	}
	s.Do("late", func() error { t.Error("a task ran after Close"); return nil })
	if err := s.Record().Await(); !errors.Is(err, device.ErrClosed) {
		t.Errorf("an event after Close: %v, want ErrClosed", err)
	}
	if err := s.Sync(); !errors.Is(err, device.ErrClosed) {
		t.Errorf("Sync: %v, want ErrClosed", err)
	}
	if _, err := dev.Alloc(64); !errors.Is(err, device.ErrClosed) {
		t.Errorf("Alloc: %v, want ErrClosed", err)
	}
	if _, err := dev.NewStream("late"); !errors.Is(err, device.ErrClosed) {
		t.Errorf("NewStream: %v, want ErrClosed", err)
	}
	if err := dev.Free(m); err != nil {
		t.Errorf("Free after Close, which freed: %v", err)
	}
}

func closeTwice(t *testing.T, dev device.Device) {
	stream(t, dev, "s")
	if err := errors.Join(dev.Close(), dev.Close()); err != nil {
		t.Error(err)
	}
}

// closeWaiting: b waits for a, whose task is held; Close must end both in whatever order it takes them.
func closeWaiting(t *testing.T, dev device.Device) {
	a, b := stream(t, dev, "a"), stream(t, dev, "b")
	release := hold(a)
	a.Do("pending", nothing)
	b.Wait(a.Record())
	b.Do("after", nothing)
	a.Wait(b.Record())
	wait := closing(dev)
	release()
	if err := wait(); err != nil {
		t.Error(err)
	}
}
