package cpu_test

import (
	"errors"
	"strings"
	"testing"

	"zeroshard/device"
	"zeroshard/device/cpu"
	"zeroshard/device/devicetest"
)

func TestDevice(t *testing.T) {
	devicetest.Run(t, func(testing.TB) device.Device { return cpu.New(cpu.Options{}) }, devicetest.Options{})
}

// A hook that injects nothing must leave the device as it is.
func TestWrapped(t *testing.T) {
	devicetest.Run(t, func(testing.TB) device.Device {
		return devicetest.Wrap(cpu.New(cpu.Options{}), func(string) error { return nil })
	}, devicetest.Options{})
}

func TestWrapInjects(t *testing.T) {
	injected := errors.New("test: injected")
	dev := devicetest.Wrap(cpu.New(cpu.Options{}), func(label string) error {
		switch label {
		case "fails", "copy":
			return injected
		case "panics":
			panic(injected)
		}
		return nil
	})
	defer dev.Close()
	for _, label := range []string{"fails", "panics", "copy"} {
		t.Run(label, func(t *testing.T) {
			s, err := dev.NewStream(label)
			if err != nil {
				t.Fatal(err)
			}
			ran := false
			s.Do("good", func() error { ran = true; return nil })
			if label == "copy" {
				dst := []float32{0}
				err = dev.Copy(s, device.Host(dst), device.Host([]float32{1}))
				defer func() {
					if dst[0] != 0 {
						t.Error("the copy was made")
					}
				}()
			} else {
				s.Do(label, func() error { t.Error("the task ran"); return nil })
			}
			if err := errors.Join(err, s.Sync()); !errors.Is(err, injected) || !ran {
				t.Errorf("Sync: %v, want the injected error; the task before it ran: %t", err, ran)
			}
		})
	}
}

func TestMemoryError(t *testing.T) {
	dev := cpu.New(cpu.Options{Name: "rank 3"})
	defer dev.Close()
	const bytes = 1 << 60
	_, err := dev.Alloc(bytes)
	if !errors.Is(err, device.ErrMemory) {
		t.Fatalf("Alloc of 2^60 bytes: %v, want ErrMemory", err)
	}
	for _, want := range []string{"rank 3", "1152921504606846976", "device: "} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
}

// A step must produce no garbage: handing work to a stream is part of it.
func TestNoAllocations(t *testing.T) {
	dev := cpu.New(cpu.Options{})
	defer dev.Close()
	a, _ := dev.NewStream("a")
	b, _ := dev.NewStream("b")
	mem, err := dev.Alloc(64)
	if err != nil {
		t.Fatal(err)
	}
	dst, src := device.Buffer{Mem: mem, Len: 4, DType: device.F32}, device.Buffer{Mem: mem, Off: 32, Len: 4, DType: device.F32}
	task := func() error { return nil }
	got := testing.AllocsPerRun(200, func() {
		for range 10 {
			a.Do("task", task)
			b.Wait(a.Record())
			b.Do("task", task)
			if dev.Copy(b, dst, src) != nil {
				t.Error("copy refused")
			}
			a.Wait(b.Record())
		}
		if a.Sync() != nil {
			t.Error("stream failed")
		}
	})
	if got != 0 {
		t.Errorf("%v allocations a run, want 0", got)
	}
}

func BenchmarkStream(b *testing.B) {
	dev := cpu.New(cpu.Options{})
	defer dev.Close()
	s, _ := dev.NewStream("s")
	task := func() error { return nil }
	b.Run("do", func(b *testing.B) {
		for b.Loop() {
			s.Do("task", task)
		}
		s.Sync()
	})
	r, _ := dev.NewStream("r")
	b.Run("ping-pong", func(b *testing.B) {
		for b.Loop() {
			s.Do("task", task)
			r.Wait(s.Record())
			r.Do("task", task)
			s.Wait(r.Record())
		}
		s.Sync()
	})
	b.Run("sync", func(b *testing.B) {
		for b.Loop() {
			s.Do("task", task)
			s.Sync()
		}
	})
}
