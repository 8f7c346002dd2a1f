package cpu

import (
	"zeroshard/device"
	"zeroshard/kernels"
	"zeroshard/prng"
)

// vectorJob is element-wise work on up to four float operands, by chunks.
type vectorJob struct {
	k    *Kernels
	op   vectorOp
	x    [4][]float32
	raw  []byte
	p    float32
	key  prng.Key
	size int
}

type vectorOp uint8

const (
	opZero vectorOp = iota
	opAdd
	opAddStream
	opGELU
	opGELUGrad
	opDropout
)

func (k *Kernels) vector(op vectorOp, n int, x ...[]float32) {
	j := &k.jobs.vector
	j.op, j.size = op, n
	copy(j.x[:], x)
	k.run(chunks(n), j)
}

func (j *vectorJob) Part(i int) {
	lo, hi := cut(i, j.size)
	path := j.k.path
	part := func(i int) []float32 {
		if j.x[i] == nil {
			return nil
		}
		return j.x[i][lo:hi]
	}
	switch j.op {
	case opZero:
		clear(j.raw[lo:hi])
	case opAdd:
		path.add(part(0), part(1), part(2))
	case opAddStream:
		path.addStream(part(0), part(1), part(2))
	case opGELU:
		path.gelu(part(0), part(1))
	case opGELUGrad:
		path.geluGrad(part(0), part(1), part(2), part(3))
	case opDropout:
		path.dropout(part(0), part(1), j.key, uint64(lo), j.p)
	}
}

// Zero: see kernels.Vector.
func (k *Kernels) Zero(_ device.Stream, dst kernels.Buffer) {
	k.jobs.vector.raw = dst.Raw()
	k.vector(opZero, len(k.jobs.vector.raw))
}

// Add: see kernels.Vector.
func (k *Kernels) Add(_ device.Stream, dst, a, b kernels.Buffer) {
	op, d, x, y := opAdd, dst.Float32s(), a.Float32s(), b.Float32s()
	if dst.Bytes() >= streamBytes && &d[0] != &x[0] && &d[0] != &y[0] {
		op = opAddStream
	}
	k.vector(op, dst.Len, d, x, y)
}

// Sum is Add.
func (k *Kernels) Sum(s device.Stream, dst, a, b kernels.Buffer) { k.Add(s, dst, a, b) }

// GELU: see kernels.Net.
func (k *Kernels) GELU(_ device.Stream, y, x kernels.Buffer) {
	k.vector(opGELU, y.Len, y.Float32s(), x.Float32s())
}

// GELUBackward: see kernels.Net.
func (k *Kernels) GELUBackward(_ device.Stream, dx, y, dy, x kernels.Buffer) {
	k.vector(opGELUGrad, dx.Len, dx.Float32s(), y.Float32s(), dy.Float32s(), x.Float32s())
}

// Dropout: see kernels.Net.
func (k *Kernels) Dropout(_ device.Stream, dst, x kernels.Buffer, p float32, key prng.Key) {
	k.jobs.vector.p, k.jobs.vector.key = p, key
	k.vector(opDropout, dst.Len, dst.Float32s(), x.Float32s())
}

func add(dst, a, b []float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = a[i] + b[i]
	}
}

func addRows(dst, x []float32, ld, rows int) {
	if len(dst) == 0 {
		return
	}
	for r := range rows {
		add(dst, dst, x[r*ld:])
	}
}

func mul(dst, a, b []float32) {
	a, b = a[:len(dst)], b[:len(dst)]
	for i := range dst {
		dst[i] = float32(a[i] * b[i])
	}
}

func scale(dst []float32, f float32) {
	for i := range dst {
		dst[i] = float32(dst[i] * f)
	}
}
