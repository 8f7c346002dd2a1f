package host_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"unsafe"

	"zeroshard/device"
	"zeroshard/offload"
	"zeroshard/offload/host"
	"zeroshard/offload/tiertest"
)

func TestTier(t *testing.T) {
	tiertest.Run(t, func(testing.TB) offload.Tier { return host.New(host.Options{Rank: 3}) })
}

func TestWrapped(t *testing.T) {
	tiertest.Run(t, func(testing.TB) offload.Tier {
		return tiertest.Wrap(host.New(host.Options{}), func(string, offload.Key) error { return nil })
	})
}

func TestWrapInjects(t *testing.T) {
	injected := errors.New("test: injected")
	fail := ""
	x := tiertest.Wrap(host.New(host.Options{}), func(verb string, k offload.Key) error {
		if verb == fail {
			return injected
		}
		return nil
	})
	defer x.Close()
	k, b := offload.Key{Flat: "h.0", State: "m"}, device.Host([]float32{1})
	calls := []struct {
		verb string
		f    func() error
	}{
		{"reserve", func() error { return x.Reserve(context.Background(), []offload.Extent{{Key: k, Bytes: 4}}) }},
		{"put", func() error { return x.Put(context.Background(), nil, k, 0, b) }},
		{"get", func() error { return x.Get(context.Background(), nil, k, 0, b) }},
	}
	for _, c := range calls {
		fail = c.verb
		if err := c.f(); !errors.Is(err, injected) {
			t.Errorf("%s: %v, want the injected error", c.verb, err)
		}
		fail = ""
		if err := c.f(); err != nil {
			t.Errorf("%s: %v", c.verb, err)
		}
	}
}

func TestNoMemory(t *testing.T) {
	x := host.New(host.Options{Rank: 2})
	defer x.Close()
	for _, bytes := range []int64{1 << 60, math.MaxInt64} {
		err := x.Reserve(context.Background(), []offload.Extent{{Key: offload.Key{Flat: "h.0", State: "m"}, Bytes: bytes}})
		var space *offload.SpaceError
		if !errors.Is(err, offload.ErrSpace) || !errors.As(err, &space) || space.Bytes != bytes || space.Rank != 2 {
			t.Errorf("%d bytes: %v, want a SpaceError", bytes, err)
		}
	}
}

// Row 67 of the field's reports: sizes past 2^31. Pages that nobody touches take no memory.
func TestPast2To31(t *testing.T) {
	x := host.New(host.Options{})
	defer x.Close()
	const size = 5 << 30
	a, b := offload.Key{Flat: "h.0", State: "m"}, offload.Key{Flat: "h.1", State: "m"}
	ctx := context.Background()
	if err := x.Reserve(ctx, []offload.Extent{{Key: a, Bytes: size}, {Key: b, Bytes: size}}); err != nil {
		t.Skipf("no address space: %v", err)
	}
	for i, off := range []int64{0, 1<<31 - 4, 1 << 32, size - 8} {
		in, out := []float32{float32(i), 7}, make([]float32, 2)
		for _, k := range []offload.Key{a, b} {
			if err := errors.Join(x.Put(ctx, nil, k, off, device.Host(in)), x.Get(ctx, nil, k, off, device.Host(out))); err != nil || out[0] != in[0] || out[1] != 7 {
				t.Errorf("%v at %d: %v, %v", k, off, out, err)
			}
		}
	}
	if x.Used() != 2*size {
		t.Errorf("%d bytes are used", x.Used())
	}
}

func TestView(t *testing.T) {
	x := host.New(host.Options{})
	defer x.Close()
	ctx, k := context.Background(), offload.Key{Flat: "h.1", State: "m"}
	if err := x.Reserve(ctx, []offload.Extent{{Key: offload.Key{Flat: "h.0", State: "m"}, Bytes: 12}, {Key: k, Bytes: 4096}}); err != nil {
		t.Fatal(err)
	}
	if err := x.Put(ctx, nil, k, 0, device.Host([]float32{1, 2, 3, 4})); err != nil {
		t.Fatal(err)
	}
	v, err := x.View(k, 4, 2, device.F32)
	if err != nil || v.Float32s()[0] != 2 || v.Float32s()[1] != 3 {
		t.Fatalf("view %v, %v", v.Float32s(), err)
	}
	v.Float32s()[0] = 20
	got := make([]float32, 1)
	if err := x.Get(ctx, nil, k, 4, device.Host(got)); err != nil || got[0] != 20 {
		t.Errorf("got %v, %v after a write through the view", got, err)
	}
	first, err := x.View(k, 0, 1024, device.F32)
	if at := uintptr(unsafe.Pointer(&first.Float32s()[0])); err != nil || at%512 != 0 {
		t.Errorf("slice at %#x, %v", at, err)
	}
	for name, view := range map[string]func() (device.Buffer, error){
		"outside":  func() (device.Buffer, error) { return x.View(k, 4, 1024, device.F32) },
		"negative": func() (device.Buffer, error) { return x.View(k, 4, -1, device.F32) },
		"crooked":  func() (device.Buffer, error) { return x.View(k, 2, 1, device.F32) },
		"unknown":  func() (device.Buffer, error) { return x.View(offload.Key{}, 0, 1, device.F32) },
	} {
		if b, err := view(); !errors.Is(err, offload.ErrArgument) || b.Len != 0 {
			t.Errorf("%s: %v, %v, want ErrArgument", name, b, err)
		}
	}
}

func TestNoAllocations(t *testing.T) {
	x := host.New(host.Options{})
	defer x.Close()
	ctx, k, b := context.Background(), offload.Key{Flat: "h.0", State: "m"}, device.Host(make([]float32, 1024))
	if err := x.Reserve(ctx, []offload.Extent{{Key: k, Bytes: 4096}}); err != nil {
		t.Fatal(err)
	}
	got := testing.AllocsPerRun(100, func() {
		if x.Put(ctx, nil, k, 0, b) != nil || x.Get(ctx, nil, k, 0, b) != nil {
			t.Error("refused")
		}
	})
	if got != 0 {
		t.Errorf("%v allocations a put and a get, want 0", got)
	}
}
