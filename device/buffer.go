package device

import (
	"fmt"
	"unsafe"
)

// Buffer is a typed window on device memory: a value, so slicing copies nothing. Off is in bytes, Len in elements.
// The zero Buffer is empty.
type Buffer struct {
	Mem   Mem
	Off   int64
	Len   int
	DType DType
}

// Bytes is the length in bytes.
func (b Buffer) Bytes() int64 {
	if b.Len == 0 {
		return 0
	}
	return int64(b.Len) * int64(b.DType.Size())
}

// Slice returns elements [lo, hi) of b.
func (b Buffer) Slice(lo, hi int) Buffer {
	if lo < 0 || hi < lo || hi > b.Len {
		panic(fmt.Sprintf("device: slice [%d:%d) of a buffer of %d elements", lo, hi, b.Len))
	}
	b.Off += int64(lo) * int64(b.DType.Size())
	b.Len = hi - lo
	return b
}

// Float32s returns b's elements in host memory: a view, not a copy. It is nil for an empty buffer and for memory that
// the CPU cannot address, and panics if b is not F32 (a bug of the caller).
func (b Buffer) Float32s() []float32 { return view[float32](b, F32) }

// Float64s is Float32s for F64.
func (b Buffer) Float64s() []float64 { return view[float64](b, F64) }

// Int32s is Float32s for I32.
func (b Buffer) Int32s() []int32 { return view[int32](b, I32) }

// Uint64s is Float32s for U64.
func (b Buffer) Uint64s() []uint64 { return view[uint64](b, U64) }

// Raw returns b's bytes in host memory, nil where the CPU cannot address it.
func (b Buffer) Raw() []byte {
	h, ok := b.Mem.(HostMem)
	if !ok || b.Len == 0 {
		return nil
	}
	return h.Bytes()[b.Off : b.Off+b.Bytes() : b.Off+b.Bytes()]
}

func view[T any](b Buffer, want DType) []T {
	if b.Len == 0 {
		return nil
	}
	if b.DType != want {
		panic(fmt.Sprintf("device: %v buffer read as %v", b.DType, want))
	}
	raw := b.Raw()
	if raw == nil {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(raw))), b.Len)
}

// Host wraps a Go slice as a buffer, for copies to and from a device.
func Host[T float32 | float64 | int32 | uint64](v []T) Buffer {
	if len(v) == 0 {
		return Buffer{}
	}
	var d DType
	switch any(v[0]).(type) {
	case float32:
		d = F32
	case float64:
		d = F64
	case int32:
		d = I32
	case uint64:
		d = U64
	}
	return Buffer{Mem: hostMem(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*d.Size())), Len: len(v), DType: d}
}

type hostMem []byte

func (h hostMem) Size() int64   { return int64(len(h)) }
func (h hostMem) Bytes() []byte { return h }
