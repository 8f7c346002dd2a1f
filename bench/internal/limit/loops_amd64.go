package limit

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

//go:noescape
func fmaAVX2(turns int, x float32) float32

//go:noescape
func fmaAVX512(turns int, x float32) float32

// dst must be aligned to 32 bytes where streaming, n a multiple of block.
//
//go:noescape
func addAVX2(dst, src unsafe.Pointer, n int)

//go:noescape
func readAVX2(src unsafe.Pointer, n int) float32

//go:noescape
func copyAVX2(dst, src unsafe.Pointer, n int)

//go:noescape
func streamAVX2(dst, src unsafe.Pointer, n int)

func vectors() bool { return cpu.X86.HasAVX2 && cpu.X86.HasFMA }

func wideVectors() bool { return cpu.X86.HasAVX512F }

// Name says which loop of multiply-adds runs.
func Name() string {
	switch {
	case wideVectors():
		return "avx512"
	case vectors():
		return "avx2"
	}
	return portableName
}

// FMA does turns turns of Flops operations each.
func FMA(turns int) {
	if !vectors() {
		portableFMA(turns)
		return
	}
	const most = 1 << 16 // some 100 µs
	for turns > 0 {
		n := min(turns, most)
		turns -= n
		if wideVectors() {
			fmaAVX512(n/2, 0.5) // a turn of it is two
			n %= 2
		}
		fmaAVX2(n, 0.5)
	}
}

// Add is dst += src, of equal lengths.
func Add(dst, src []float32) {
	n := 0
	if vectors() && len(dst) > 0 {
		n = len(dst) * 4 / block * block
		_ = src[len(dst)-1]
		pieces(unsafe.Pointer(unsafe.SliceData(dst)), unsafe.Pointer(unsafe.SliceData(src)), n, addAVX2)
	}
	portableAdd(dst[n/4:], src[n/4:])
}

// Read returns the sum of src, in an order of its own.
func Read(src []float32) (sum float32) {
	n := 0
	if vectors() {
		n = len(src) * 4 / block * block
		for at := 0; at < n; at += piece {
			sum += readAVX2(unsafe.Pointer(&src[at/4]), min(piece, n-at))
		}
	}
	return sum + portableRead(src[n/4:])
}

// Copiers are the ways to copy that this machine has: which is the fastest depends on the size.
func Copiers() []Copier {
	ways := []Copier{{"memmove", func(dst, src []byte) { copy(dst, src) }}}
	if vectors() {
		ways = append(ways, Copier{"avx2", copier(copyAVX2)}, Copier{"avx2 streaming", copier(streamAVX2)})
	}
	return ways
}

// copier copies with loop what is aligned and whole, the rest with copy.
func copier(loop func(dst, src unsafe.Pointer, n int)) func(dst, src []byte) {
	return func(dst, src []byte) {
		src = src[:len(dst)]
		to := unsafe.Pointer(unsafe.SliceData(dst))
		n := 0
		if uintptr(to)%32 == 0 {
			n = len(dst) / block * block
			pieces(to, unsafe.Pointer(unsafe.SliceData(src)), n, loop)
		}
		copy(dst[n:], src[n:])
	}
}

func pieces(dst, src unsafe.Pointer, n int, loop func(dst, src unsafe.Pointer, n int)) {
	for at := 0; at < n; at += piece {
		loop(unsafe.Add(dst, at), unsafe.Add(src, at), min(piece, n-at))
	}
}
