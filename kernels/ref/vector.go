package ref

import (
	"unsafe"

	"zeroshard/device"
	"zeroshard/internal/exact"
	"zeroshard/internal/invariants"
	"zeroshard/kernels"
	"zeroshard/kernels/internal/f32"
)

// Zero sets dst to zero.
func (*Kernels) Zero(_ device.Stream, dst kernels.Buffer) { clear(dst.Raw()) }

// Add sets dst = a + b.
func (*Kernels) Add(_ device.Stream, dst, a, b kernels.Buffer) {
	d, x, y := dst.Float32s(), a.Float32s(), b.Float32s()
	for i := range d {
		d[i] = x[i] + y[i]
	}
}

// Sum sets dst = a + b.
func (k *Kernels) Sum(s device.Stream, dst, a, b kernels.Buffer) { k.Add(s, dst, a, b) }

// Cast converts through float32, which holds every bf16 and fp16 exactly.
func (*Kernels) Cast(_ device.Stream, dst, src kernels.Buffer) {
	for i := range dst.Len {
		store(dst, i, load(src, i))
	}
}

func load(b kernels.Buffer, i int) float32 {
	switch b.DType {
	case device.F32:
		return b.Float32s()[i]
	case device.BF16:
		return f32.FromBF16(halves(b)[i])
	case device.F16:
		return f32.FromF16(halves(b)[i])
	}
	invariants.Broken("ref: cast from %v", b.DType)
	return 0
}

func store(b kernels.Buffer, i int, v float32) {
	switch b.DType {
	case device.F32:
		b.Float32s()[i] = v
	case device.BF16:
		halves(b)[i] = f32.ToBF16(v)
	case device.F16:
		halves(b)[i] = f32.ToF16(v)
	default:
		invariants.Broken("ref: cast to %v", b.DType)
	}
}

func halves(b kernels.Buffer) []uint16 {
	raw := b.Raw()
	return unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(raw))), len(raw)/2)
}

// SumSquares adds each grain's sum of squares (f32.SumSquares) exactly.
func (*Kernels) SumSquares(_ device.Stream, acc, x kernels.Buffer, tag uint32) {
	sum, v := acc.Uint64s(), x.Float32s()
	for lo := 0; lo < len(v); lo += f32.Grain {
		exact.Add(sum, f32.SumSquares(v[lo:min(lo+f32.Grain, len(v))]), tag)
	}
}
