package safetensors

import (
	"fmt"
	"math"
)

// DType is an element type by the name that the format gives it.
type DType string

// The element types. Those of fewer than 8 bits (F4, F6_…) are not among them.
const (
	F64    DType = "F64"
	F32    DType = "F32"
	F16    DType = "F16"
	BF16   DType = "BF16"
	F8E4M3 DType = "F8_E4M3"
	F8E5M2 DType = "F8_E5M2"
	F8E8M0 DType = "F8_E8M0"
	C64    DType = "C64"
	I64    DType = "I64"
	I32    DType = "I32"
	I16    DType = "I16"
	I8     DType = "I8"
	U64    DType = "U64"
	U32    DType = "U32"
	U16    DType = "U16"
	U8     DType = "U8"
	Bool   DType = "BOOL"
)

// Size is the bytes of an element, 0 for a type that this package does not know.
func (d DType) Size() int {
	switch d {
	case F64, I64, U64, C64:
		return 8
	case F32, I32, U32:
		return 4
	case F16, BF16, I16, U16:
		return 2
	case F8E4M3, F8E5M2, F8E8M0, I8, U8, Bool:
		return 1
	}
	return 0
}

// Tensor is a tensor's description and place.
type Tensor struct {
	Name   string
	DType  DType
	Shape  []int64 // none: a scalar, one element; a 0 in it: no elements
	Lo, Hi int64   // its bytes [Lo, Hi) of the data part, row-major, little-endian
}

// Len is the number of elements. For a tensor that came from neither Parse nor Place it may be nonsense.
func (t Tensor) Len() int64 {
	n := int64(1)
	for _, d := range t.Shape {
		n *= d
	}
	return n
}

// bytes is the tensor's size by type and shape, or why it has none.
func (t Tensor) bytes() (int64, error) {
	size := int64(t.DType.Size())
	if size == 0 {
		return 0, fmt.Errorf("unknown element type %q", t.DType)
	}
	// Zeros are left out of the product, so that whoever multiplies some of the dimensions stays in range too.
	n, empty := size, false
	for _, d := range t.Shape {
		switch {
		case d < 0:
			return 0, fmt.Errorf("shape %v has a negative dimension", t.Shape)
		case d == 0:
			empty = true
		case n > math.MaxInt64/d:
			return 0, fmt.Errorf("shape %v has more bytes than an int64 counts", t.Shape)
		default:
			n *= d
		}
	}
	if empty {
		n = 0
	}
	return n, nil
}
