package devicetest

import (
	"errors"
	"math"
	"slices"
	"testing"
	"unsafe"

	"zeroshard/device"
)

func memorySizes(t *testing.T, dev device.Device) {
	for _, n := range []int64{0, 1, 4095, 4096, 4097, 1 << 20} {
		m, err := dev.Alloc(n)
		if err != nil {
			t.Fatalf("Alloc(%d): %v", n, err)
		}
		if m.Size() != n {
			t.Errorf("Alloc(%d) has size %d", n, m.Size())
		}
		if h, ok := m.(device.HostMem); ok && int64(len(h.Bytes())) != n {
			t.Errorf("Alloc(%d) has %d bytes", n, len(h.Bytes()))
		}
	}
}

func memoryRefused(t *testing.T, dev device.Device) {
	if _, err := dev.Alloc(math.MaxInt64); !errors.Is(err, device.ErrMemory) {
		t.Errorf("Alloc of 2^63-1 bytes: %v, want ErrMemory", err)
	}
	if _, err := dev.Alloc(-1); !errors.Is(err, device.ErrArgument) {
		t.Errorf("Alloc of -1 bytes: %v, want ErrArgument", err)
	}
	if _, err := dev.Alloc(64); err != nil {
		t.Errorf("Alloc of 64 bytes after refusals: %v", err)
	}
}

func memoryCounted(t *testing.T, dev device.Device) {
	c, ok := dev.(Counter)
	if !ok {
		t.Skip("the device does not count")
	}
	want := func(used, peak int64) {
		t.Helper()
		if c.Used() != used || c.Peak() != peak {
			t.Errorf("used %d, peak %d; want %d, %d", c.Used(), c.Peak(), used, peak)
		}
	}
	want(0, 0)
	a, _ := dev.Alloc(1000)
	b, _ := dev.Alloc(1)
	want(1001, 1001) // as asked for, not in pages
	dev.Free(a)
	want(1, 1001)
	dev.Alloc(500)
	want(501, 1001)
	dev.Free(b)
	dev.Alloc(2000)
	want(2500, 2500)
	dev.Alloc(math.MaxInt64)
	want(2500, 2500) // a refusal counts nothing
}

func memoryFree(t *testing.T, dev device.Device) {
	a, err := dev.Alloc(64)
	if err != nil {
		t.Fatal(err)
	}
	if err := dev.Free(a); err != nil {
		t.Errorf("Free: %v", err)
	}
	if err := dev.Free(a); !errors.Is(err, device.ErrArgument) {
		t.Errorf("second Free: %v, want ErrArgument", err)
	}
	if err := dev.Free(device.Host([]float32{1}).Mem); !errors.Is(err, device.ErrArgument) {
		t.Errorf("Free of host memory: %v, want ErrArgument", err)
	}
	if err := dev.Free(nil); !errors.Is(err, device.ErrArgument) {
		t.Errorf("Free of nil: %v, want ErrArgument", err)
	}
}

func memoryZeroed(t *testing.T, dev device.Device) {
	for range 3 { // the second round may get the dirty pages of the first
		b := floats(t, dev, 10_000)
		v := b.Float32s()
		if at := uintptr(unsafe.Pointer(&v[0])); at%4096 != 0 {
			t.Fatalf("memory at %#x is not aligned to 4096", at)
		}
		for i := range v {
			if v[i] != 0 {
				t.Fatalf("element %d of new memory is %v", i, v[i])
			}
			v[i] = float32(i + 1)
		}
		if err := dev.Free(b.Mem); err != nil {
			t.Fatal(err)
		}
	}
}

func bufferViews(t *testing.T, dev device.Device) {
	b := floats(t, dev, 10)
	for i, v := 0, b.Float32s(); i < 10; i++ {
		v[i] = float32(i)
	}
	mid := b.Slice(2, 8).Slice(1, 4)
	if got := mid.Float32s(); !slices.Equal(got, []float32{3, 4, 5}) || cap(got) != 3 {
		t.Errorf("elements [3,6) are %v with capacity %d", got, cap(got))
	}
	mid.Float32s()[0] = 30
	if got := b.Float32s()[3]; got != 30 {
		t.Errorf("a write through a view is not seen in the buffer: %v", got)
	}
	u := device.Buffer{Mem: b.Mem, Off: 16, Len: 3, DType: device.U64}
	if got, want := u.Uint64s()[0]>>32, uint64(math.Float32bits(5)); got != want && got != uint64(math.Float32bits(4)) {
		t.Errorf("the same bytes as uint64 hold %#x, want %#x", got, want)
	}
}
