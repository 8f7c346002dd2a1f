package pages_test

import (
	"math"
	"testing"
	"unsafe"

	"zeroshard/internal/pages"
)

func TestMap(t *testing.T) {
	for _, bytes := range []int64{0, 1, 4095, 4096, 4097, 1 << 20} {
		mem, err := pages.Map(bytes)
		if err != nil {
			t.Fatal(err)
		}
		if int64(len(mem)) < bytes || len(mem) != pages.RoundUp(bytes) || cap(mem) != len(mem) {
			t.Errorf("%d bytes asked for: length %d, capacity %d", bytes, len(mem), cap(mem))
		}
		if at := uintptr(unsafe.Pointer(unsafe.SliceData(mem))); at%pages.Alignment != 0 {
			t.Errorf("%d bytes at %#x: not aligned", bytes, at)
		}
		for i, b := range mem {
			if b != 0 {
				t.Fatalf("byte %d of %d is %d", i, bytes, b)
			}
			mem[i] = 1
		}
		if err := pages.Unmap(mem); err != nil {
			t.Error(err)
		}
	}
}

func TestMapRefuses(t *testing.T) {
	for _, bytes := range []int64{-1, math.MinInt64, math.MaxInt64, 1 << 62} {
		if mem, err := pages.Map(bytes); err == nil {
			t.Errorf("%d bytes gave %d", bytes, len(mem))
		}
	}
}
