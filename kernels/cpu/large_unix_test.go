//go:build unix

package cpu

import (
	"math"
	"slices"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// sparse is n floats of which only those touched take memory.
func sparse(t *testing.T, n int) []float32 {
	mem, err := unix.Mmap(-1, 0, 4*n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_NORESERVE)
	if err != nil {
		t.Skipf("no %d bytes of address space: %v", 4*n, err)
	}
	t.Cleanup(func() { _ = unix.Munmap(mem) })
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(mem))), n)
}

// spread is a matrix of rows by cols (by columns if turned) with numbers in it, the lines of which lie far apart: its last elements are beyond
// 2³¹ elements, and a line is further from the next than 32 bits count bytes.
func spread(t *testing.T, rows, cols int, turned bool) (far, near matrix) {
	lines, length := rows, cols
	if turned {
		lines, length = cols, rows
	}
	step := max(1<<30+16, (1<<31+1<<20)/lines)
	far, near = matrix{sparse(t, (lines-1)*step+length), step, 1}, matrix{make([]float32, lines*length), length, 1}
	for i := range lines {
		for j := range length {
			v := float32((i*length+j)%13) - 6.25
			far.x[i*step+j], near.x[i*length+j] = v, v
		}
	}
	if turned {
		return far.transposed(), near.transposed()
	}
	return far, near
}

// Operands beyond 2³¹ elements.
func TestProductsOfLargeStrides(t *testing.T) {
	if math.MaxInt == math.MaxInt32 {
		t.Skip("the address space ends before")
	}
	const m, n, k = 7, 35, 9
	for _, path := range paths() {
		for _, op := range []string{"NN", "NT", "TN", "TT"} {
			t.Run(path.name+"/"+op, func(t *testing.T) {
				var far, near product
				far.m, far.n, far.k, far.add = m, n, k, true
				near = far
				far.c, near.c = spread(t, m, n, false)
				far.a, near.a = spread(t, m, k, op[0] == 'T')
				far.b, near.b = spread(t, k, n, op[1] == 'T')
				path.multiply(far, make([]float32, packFloats))
				path.multiply(near, make([]float32, packFloats))
				for i := range m {
					if got, want := far.c.x[i*far.c.row:][:n], near.c.x[i*n:][:n]; !slices.Equal(got, want) {
						t.Fatalf("row %d is %v, want %v", i, got, want)
					}
				}
			})
		}
	}
}
