package collectives

import (
	"fmt"
	"unsafe"

	"zeroshard/device"
)

// Call is what all ranks must agree on before data moves. It is comparable, and small enough to send.
type Call struct {
	Verb  Verb
	Len   int // elements of one rank's piece: of src of an all-gather, of a slot of a reduce-scatter
	DType device.DType
	Fold  FoldID // zero for an all-gather
}

// String is "all-gather of 1024 fp32", "reduce-scatter of 128 fp32 (window 1 of 2×3 leaves, 8 in all)".
func (c Call) String() string {
	s := fmt.Sprintf("%v of %d %v", c.Verb, c.Len, c.DType)
	if c.Verb == ReduceScatter {
		s += fmt.Sprintf(" (window %d of %d×%d leaves, %d in all)", c.Fold.Index, c.Fold.Size, c.Fold.Window, c.Fold.Leaves)
	}
	return s
}

// GatherCall checks the buffers of rank's all-gather among size ranks and returns the call to agree on.
func GatherCall(rank, size int, dst, src device.Buffer) (Call, error) {
	c := Call{Verb: AllGather, Len: src.Len, DType: src.DType}
	if src.Len == 0 { // an empty buffer need not have a dtype
		c.DType = 0
	}
	switch {
	case dst.Len == 0: // it only serves
	case dst.Len != size*src.Len:
		return c, argument("all-gather of %d elements from each of %d ranks into %d: want %d", src.Len, size, dst.Len, size*src.Len)
	case src.Len > 0 && dst.DType != src.DType:
		return c, argument("all-gather of %v into %v", src.DType, dst.DType)
	case overlap(dst, src) && !same(dst.Slice(rank*src.Len, (rank+1)*src.Len), src):
		return c, argument("all-gather whose source lies in its destination, but not at rank %d's place", rank)
	}
	return c, nil
}

// ReduceCall checks rank's reduce-scatter among size ranks and returns the call to agree on.
func ReduceCall(rank, size int, r Reduction) (Call, error) {
	c := Call{Verb: ReduceScatter, DType: device.F32}
	f := r.Fold
	if f == nil {
		return c, argument("reduce-scatter without a fold")
	}
	c.Fold = f.FoldID
	if f.Size != size {
		return c, argument("reduce-scatter with the fold of %d ranks among %d", f.Size, size)
	}
	if len(r.Out) != f.Out || len(r.In) != f.In {
		return c, argument("reduce-scatter of %d carry slots into %d: its fold reads %d and writes %d", len(r.In), len(r.Out), f.In, f.Out)
	}
	c.Len = r.Out[0].Len
	want := 0
	if f.Present[rank] {
		want = size * c.Len
	}
	if r.Src.Len != want {
		return c, argument("reduce-scatter from %d elements: rank %d has %d in window %d", r.Src.Len, rank, want, f.Index)
	}
	if !isF32(r.Src, want) {
		return c, argument("reduce-scatter from %v: parts are fp32", r.Src.DType)
	}
	return c, slots(rank, r, c.Len)
}

// slots checks lengths, dtypes and aliases of the carry.
func slots(rank int, r Reduction, n int) error {
	for i, in := range r.In {
		if !isF32(in, n) {
			return argument("reduce-scatter: carry slot %d is %d %v, slot 0 of the result is %d fp32", i, in.Len, in.DType, n)
		}
		if overlap(in, r.Src) {
			return argument("reduce-scatter: carry slot %d lies in the source", i)
		}
	}
	for i, out := range r.Out {
		if !isF32(out, n) {
			return argument("reduce-scatter: slot %d of the result is %d %v, slot 0 is %d fp32", i, out.Len, out.DType, n)
		}
		if overlap(out, r.Src) && !(len(r.Out) == 1 && same(out, r.Src.Slice(rank*n, (rank+1)*n))) {
			return argument("reduce-scatter: slot %d of the result lies in the source, but is not rank %d's slice alone", i, rank)
		}
		for j, in := range r.In {
			if overlap(out, in) && !(i == j && same(out, in)) {
				return argument("reduce-scatter: slot %d of the result lies in carry slot %d", i, j)
			}
		}
		for j := range i {
			if overlap(out, r.Out[j]) {
				return argument("reduce-scatter: slots %d and %d of the result overlap", j, i)
			}
		}
	}
	return nil
}

func argument(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrArgument, fmt.Sprintf(format, args...))
}

// isF32 reports whether b is n fp32 elements; an empty buffer need not have a dtype.
func isF32(b device.Buffer, n int) bool {
	return b.Len == n && (n == 0 || b.DType == device.F32)
}

// overlap reports whether a and b share bytes that the CPU can address. (Of other memory it knows nothing.)
func overlap(a, b device.Buffer) bool {
	x, y := a.Raw(), b.Raw()
	if len(x) == 0 || len(y) == 0 {
		return false
	}
	p, q := address(x), address(y)
	return p < q+uintptr(len(y)) && q < p+uintptr(len(x))
}

// same reports whether a and b are the same bytes.
func same(a, b device.Buffer) bool {
	x, y := a.Raw(), b.Raw()
	return len(x) == len(y) && (len(x) == 0 || address(x) == address(y))
}

func address(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }
