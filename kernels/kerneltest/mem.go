package kerneltest

import (
	"encoding/binary"
	"math"
	"math/rand/v2"

	"zeroshard/device"
	"zeroshard/kernels"
)

// values says what random floats look like.
type values int

const (
	numbers values = iota
	nans           // some are NaN
	infs           // some are ±Inf
	tiny           // denormals, products that vanish, signed zeros
	huge           // products that overflow
	kinds
)

func (v values) String() string {
	return [...]string{"numbers", "nan", "inf", "tiny", "huge"}[v]
}

// draw is a number in ±4, or an odd one. It takes one word from r: most of a run's time is making operands.
func (v values) draw(r *rand.PCG) float32 {
	word := r.Uint64()
	x, more := float32(int32(word))*0x1p-29, int(word>>32)
	odd := more%23 == 0
	switch {
	case v == nans && odd:
		return float32(math.NaN())
	case v == infs && odd:
		return float32(math.Inf(more>>16&1*2 - 1))
	case v == tiny:
		return float32(math.Ldexp(float64(x), -(more%160))) * float32(more>>16&1)
	case v == huge:
		return float32(math.Ldexp(float64(x), more%125))
	}
	return x
}

// mem gives out operands with the same contents for the same seed. Each is a mapping of its own between two guard pages, and
// touches one of them.
type mem struct {
	rng   *rand.PCG
	vals  values
	front bool // operands touch the guard before them, not the one behind
	made  []kernels.Buffer
	free  []func()
}

func newMem(seed int64, v values, front bool) *mem {
	return &mem{rng: rand.NewPCG(uint64(seed), 0), vals: v, front: front}
}

func (m *mem) release() {
	for _, f := range m.free {
		f()
	}
}

// size is the number of bytes of all operands.
func (m *mem) size() (n int64) {
	for _, b := range m.made {
		n += b.Bytes()
	}
	return n
}

type block []byte

func (b block) Size() int64   { return int64(len(b)) }
func (b block) Bytes() []byte { return b }

func (m *mem) buffer(n int, d device.DType) kernels.Buffer {
	if n == 0 {
		return kernels.Buffer{}
	}
	b, free := guarded(n*d.Size(), m.front)
	m.free = append(m.free, free)
	buf := kernels.Buffer{Mem: block(b), Len: n, DType: d}
	m.made = append(m.made, buf)
	return buf
}

// f32 is n random floats.
func (m *mem) f32(n int) kernels.Buffer {
	b := m.buffer(n, device.F32)
	x := b.Float32s()
	for i := range x {
		x[i] = m.vals.draw(m.rng)
	}
	return b
}

// opt is f32(n) or nothing.
func (m *mem) opt(ok bool, n int) kernels.Buffer {
	if ok {
		return m.f32(n)
	}
	return kernels.Buffer{}
}

// positive is f32 without signs: second moments.
func (m *mem) positive(n int) kernels.Buffer {
	b := m.f32(n)
	x := b.Float32s()
	for i, v := range x {
		x[i] = float32(math.Abs(float64(v)))
	}
	return b
}

func (m *mem) of(v ...float32) kernels.Buffer {
	b := m.buffer(len(v), device.F32)
	copy(b.Float32s(), v)
	return b
}

// f64 is n zeros.
func (m *mem) f64(n int) kernels.Buffer { return m.buffer(n, device.F64) }

// u64 is n zeros.
func (m *mem) u64(n int) kernels.Buffer { return m.buffer(n, device.U64) }

// ints is n integers in [lo, hi).
func (m *mem) ints(n, lo, hi int) kernels.Buffer {
	b := m.buffer(n, device.I32)
	x := b.Int32s()
	for i := range x {
		x[i] = int32(lo + int(m.rng.Uint64()%uint64(hi-lo)))
	}
	return b
}

// half is n random 16-bit patterns.
func (m *mem) half(n int, d device.DType) kernels.Buffer {
	b := m.buffer(n, d)
	for i := 0; i < 2*n; i += 2 {
		binary.NativeEndian.PutUint16(b.Raw()[i:], uint16(m.rng.Uint64()))
	}
	return b
}
