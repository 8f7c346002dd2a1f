package kerneltest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"testing"

	"zeroshard/device"
	"zeroshard/kernels"
	"zeroshard/kernels/internal/f32"
)

// Kernels is all that a backend gives.
type Kernels = kernels.Backend

// test is one call of one kernel: it makes operands in m, which is seeded by name, and returns the call.
type test struct {
	name string
	call func(m *mem) func(Kernels)
}

// backend is kernels under test, and where their operands lie.
type backend struct {
	name  string
	k     Kernels
	front bool
}

// Run holds a backend to want's bits. A backend must work on a nil pool (one thread).
func Run(t *testing.T, newKernels func(kernels.Pool) Kernels, want Kernels) {
	RunAll(t, map[string]func(kernels.Pool) Kernels{"backend": newKernels}, want)
}

// RunAll is Run for several backends, by name, which must agree.
func RunAll(t *testing.T, newKernels map[string]func(kernels.Pool) Kernels, want Kernels) {
	var backends []backend
	for name, f := range newKernels {
		backends = append(backends, backend{name + ", 1 thread", f(nil), false}, backend{name + ", 2 threads", f(pool(2)), true},
			backend{name + ", 3 threads", f(pool(3)), false})
		t.Run("no allocation/"+name, func(t *testing.T) { noAllocation(t, f) })
	}
	for _, c := range append(vectorTests(), netTests()...) {
		t.Run(c.name, func(t *testing.T) {
			for _, fault := range c.faults(backends, want) {
				t.Error(fault)
			}
		})
	}
}

// faults says where backends differ from want.
func (c test) faults(backends []backend, want Kernels) (faults []string) {
	for v := range kinds {
		truth := newMem(seed(c.name), v, false)
		c.call(truth)(want)
		for _, b := range backends {
			got := newMem(seed(c.name), v, b.front)
			c.call(got)(b.k)
			if d := difference(got.made, truth.made); d != "" {
				faults = append(faults, fmt.Sprintf("%v, %s: %s", v, b.name, d))
			}
			got.release()
		}
		truth.release()
		if size := truth.size(); size > 1<<17 || testing.Short() && size > 1<<12 {
			break // odd values are for the tails: big operands see numbers only
		}
	}
	return faults
}

func seed(name string) int64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	return int64(h.Sum64())
}

// difference tells of the first element that differs, of operands in the order in which the test made them.
func difference(got, want []kernels.Buffer) string {
	for op := range want {
		g, w, size := got[op].Raw(), want[op].Raw(), want[op].DType.Size()
		if bytes.Equal(g, w) {
			continue
		}
		for i := 0; i < len(w); i += size {
			if d := want[op].DType; !same(d, g[i:i+size], w[i:i+size]) {
				return fmt.Sprintf("operand %d (%v, %d elements), element %d: got %s, want %s", op, d, want[op].Len, i/size, show(d, g[i:i+size]), show(d, w[i:i+size]))
			}
		}
	}
	return ""
}

func same(d device.DType, a, b []byte) bool {
	return string(a) == string(b) || math.IsNaN(number(d, a)) && math.IsNaN(number(d, b))
}

func show(d device.DType, b []byte) string { return fmt.Sprintf("%x (%g)", b, number(d, b)) }

func number(d device.DType, b []byte) float64 {
	switch d {
	case device.F32:
		return float64(math.Float32frombits(binary.NativeEndian.Uint32(b)))
	case device.F64:
		return math.Float64frombits(binary.NativeEndian.Uint64(b))
	case device.BF16:
		return float64(f32.FromBF16(binary.NativeEndian.Uint16(b)))
	case device.F16:
		return float64(f32.FromF16(binary.NativeEndian.Uint16(b)))
	case device.I32:
		return float64(int32(binary.NativeEndian.Uint32(b)))
	}
	return float64(binary.NativeEndian.Uint64(b))
}

// noAllocation makes every call on one thread and on three.
func noAllocation(t *testing.T, newKernels func(kernels.Pool) Kernels) {
	one, three := newKernels(nil), newKernels(serial(3))
	for _, c := range append(vectorTests(), netTests()...) {
		m := newMem(seed(c.name), numbers, false)
		call := c.call(m)
		for _, k := range []Kernels{one, three} {
			n := 1.0
			for try := 0; n != 0 && try < 3; try++ { // the runtime's own allocations count too, but do not come back
				n = testing.AllocsPerRun(1, func() { call(k) })
			}
			if n != 0 {
				t.Errorf("%s allocates %v times", c.name, n)
			}
		}
		m.release()
	}
}
