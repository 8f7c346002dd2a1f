package cpu

import (
	"unsafe"

	"zeroshard/device"
	"zeroshard/internal/invariants"
	"zeroshard/kernels"
	"zeroshard/kernels/internal/f32"
)

// castJob converts by chunks.
type castJob struct {
	k        *Kernels
	dst, src kernels.Buffer
	stream   bool
}

// streamBytes is what a result is long that is not worth a place in the caches: nobody finds the start of it there.
const streamBytes = 8 << 20

// Cast: see kernels.Vector.
func (k *Kernels) Cast(_ device.Stream, dst, src kernels.Buffer) {
	j := &k.jobs.cast
	j.dst, j.src, j.stream = dst, src.Slice(0, dst.Len), dst.Bytes() >= streamBytes
	k.run(chunks(dst.Len), j)
}

func (j *castJob) Part(i int) {
	lo, hi := cut(i, j.dst.Len)
	dst, src := j.dst.Slice(lo, hi), j.src.Slice(lo, hi)
	switch d, s := dst.DType, src.DType; {
	case d == device.F32 && s == device.F32:
		copy(dst.Float32s(), src.Float32s())
	case d == device.F32:
		j.k.path.widen(dst.Float32s(), halves(src), s, j.stream)
	case s == device.F32:
		j.k.path.narrow(halves(dst), src.Float32s(), d, j.stream)
	default:
		through(dst, src)
	}
}

// through casts between 16-bit types by way of float32, which holds both exactly.
func through(dst, src kernels.Buffer) {
	var block [256]float32
	for lo := 0; lo < dst.Len; lo += len(block) {
		hi := min(lo+len(block), dst.Len)
		widen(block[:hi-lo], halves(src)[lo:hi], src.DType, false)
		narrow(halves(dst)[lo:hi], block[:hi-lo], dst.DType, false)
	}
}

func widen(dst []float32, src []uint16, from device.DType, _ bool) {
	src = src[:len(dst)]
	switch from {
	case device.BF16:
		for i, h := range src {
			dst[i] = f32.FromBF16(h)
		}
	case device.F16:
		for i, h := range src {
			dst[i] = f32.FromF16(h)
		}
	default:
		invariants.Broken("cpu: cast from %v", from)
	}
}

func narrow(dst []uint16, src []float32, to device.DType, _ bool) {
	dst = dst[:len(src)]
	switch to {
	case device.BF16:
		for i, v := range src {
			dst[i] = f32.ToBF16(v)
		}
	case device.F16:
		for i, v := range src {
			dst[i] = f32.ToF16(v)
		}
	default:
		invariants.Broken("cpu: cast to %v", to)
	}
}

func halves(b kernels.Buffer) []uint16 {
	raw := b.Raw()
	return unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(raw))), len(raw)/2)
}
