package cpu

import (
	"unsafe"

	"zeroshard/device"
)

// widen and narrow stream where dst begins at a cache line.
func (s set) widen(dst []float32, src []uint16, from device.DType, stream bool) {
	n := whole(len(dst), rowTurn)
	src = src[:len(dst)]
	switch stream = stream && n > 0 && atLine(unsafe.Pointer(unsafe.SliceData(dst))); {
	case from == device.BF16:
		s.widenBF16(dst[:n], src, stream)
	case from == device.F16:
		s.widenF16(dst[:n], src, stream)
	default:
		n = 0
	}
	widen(dst[n:], src[n:], from, false)
}

func (s set) narrow(dst []uint16, src []float32, to device.DType, stream bool) {
	n := whole(len(dst), rowTurn)
	src = src[:len(dst)]
	switch stream = stream && n > 0 && atLine(unsafe.Pointer(unsafe.SliceData(dst))); {
	case to == device.BF16:
		s.narrowBF16(dst[:n], src, stream)
	case to == device.F16:
		s.narrowF16(dst[:n], src, stream)
	default:
		n = 0
	}
	narrow(dst[n:], src[n:], to, false)
}

func atLine(p unsafe.Pointer) bool { return uintptr(p)%64 == 0 }

func (s set) widenBF16(dst []float32, src []uint16, stream bool) {
	switch {
	case s == avx512 && stream:
		widenBF16StreamAVX512(dst, src)
	case s == avx512:
		widenBF16AVX512(dst, src)
	case stream:
		widenBF16StreamAVX2(dst, src)
	default:
		widenBF16AVX2(dst, src)
	}
}

func (s set) widenF16(dst []float32, src []uint16, stream bool) {
	switch {
	case s == avx512 && stream:
		widenF16StreamAVX512(dst, src)
	case s == avx512:
		widenF16AVX512(dst, src)
	case stream:
		widenF16StreamAVX2(dst, src)
	default:
		widenF16AVX2(dst, src)
	}
}

func (s set) narrowBF16(dst []uint16, src []float32, stream bool) {
	switch {
	case s == avx512 && stream:
		narrowBF16StreamAVX512(dst, src)
	case s == avx512:
		narrowBF16AVX512(dst, src)
	case stream:
		narrowBF16StreamAVX2(dst, src)
	default:
		narrowBF16AVX2(dst, src)
	}
}

func (s set) narrowF16(dst []uint16, src []float32, stream bool) {
	if stream {
		narrowF16StreamAVX2(dst, src)
	} else {
		narrowF16AVX2(dst, src)
	}
}
