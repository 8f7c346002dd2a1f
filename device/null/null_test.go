package null_test

import (
	"errors"
	"maps"
	"testing"

	"zeroshard/device"
	"zeroshard/device/devicetest"
	"zeroshard/device/null"
)

func TestDevice(t *testing.T) {
	devicetest.Run(t, func(testing.TB) device.Device { return null.New() }, devicetest.Options{Inert: true})
}

func TestCounts(t *testing.T) {
	dev := null.New()
	defer dev.Close()
	s, err := dev.NewStream("comm")
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		s.Do("gather h.0", func() error { t.Error("a task ran"); return nil })
	}
	mem, err := dev.Alloc(1 << 40)
	if err != nil {
		t.Fatal(err)
	}
	b := device.Buffer{Mem: mem, Len: 1 << 38, DType: device.F32}
	if err := dev.Copy(s, b.Slice(0, 1<<33), b.Slice(1<<33, 1<<34)); err != nil {
		t.Fatal(err)
	}
	want := map[string]int64{"gather h.0": 3, "copy": 1}
	if got := dev.Tasks(); !maps.Equal(got, want) {
		t.Errorf("tasks %v, want %v", got, want)
	}
	if got := dev.Copied(); got != 1<<35 {
		t.Errorf("%d bytes copied, want 2^35", got)
	}
}

func TestUpTo2To62Bytes(t *testing.T) {
	dev := null.New()
	defer dev.Close()
	if _, err := dev.Alloc(1 << 62); err != nil {
		t.Fatalf("2^62 bytes: %v", err)
	}
	if _, err := dev.Alloc(1); !errors.Is(err, device.ErrMemory) {
		t.Errorf("one more: %v, want ErrMemory", err)
	}
	if dev.Used() != 1<<62 || dev.Peak() != 1<<62 {
		t.Errorf("used %d, peak %d", dev.Used(), dev.Peak())
	}
}

// A stream of this device takes over the error of another device's.
func TestErrorFromAfar(t *testing.T) {
	dev := null.New()
	defer dev.Close()
	s, _ := dev.NewStream("s")
	before := s.Record()
	failed := errors.New("test: failed")
	s.Wait(device.Event{Source: failedSource{failed}, Seq: 1})
	if err := s.Sync(); err != failed {
		t.Errorf("Sync: %v, want the error of the event", err)
	}
	if err := before.Await(); err != nil {
		t.Errorf("an event before it: %v", err)
	}
}

type failedSource struct{ err error }

func (f failedSource) Await(uint64) error { return f.err }
