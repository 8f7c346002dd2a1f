package safetensors

import (
	"encoding/binary"
	"fmt"
	"math"
)

// widen fills dst from src, elements of type d. It is exact: an F64 that no float32 equals is refused, and so are types that are
// not floating-point numbers of 16 bits or more. NaN stays NaN.
func widen(dst []float32, src []byte, d DType) error {
	switch d {
	case F32:
		for i := range dst {
			dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
		}
	case BF16:
		for i := range dst {
			dst[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(src[2*i:])) << 16)
		}
	case F16:
		for i := range dst {
			dst[i] = fromF16(binary.LittleEndian.Uint16(src[2*i:]))
		}
	case F64:
		for i := range dst {
			v := math.Float64frombits(binary.LittleEndian.Uint64(src[8*i:]))
			dst[i] = float32(v)
			if float64(dst[i]) != v && v == v {
				return fmt.Errorf("%w: element %d is %v, which no float32 equals", ErrConvert, i, v)
			}
		}
	default:
		return fmt.Errorf("%w: %s to fp32", ErrConvert, d)
	}
	return nil
}

// AppendFloat32s appends the elements of v as type d: F32, or F16 and BF16 rounded to nearest, ties to even. Infinities and NaN stay
// what they are. ErrConvert: another type, or a finite number that the type cannot hold.
func AppendFloat32s(dst []byte, d DType, v []float32) ([]byte, error) {
	switch d {
	case F32:
		for _, x := range v {
			dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(x))
		}
	case F16, BF16:
		round, infinity := toF16, uint16(0x7c00)
		if d == BF16 {
			round, infinity = toBF16, 0x7f80
		}
		for i, x := range v {
			h := round(x)
			if h&0x7fff == infinity && !math.IsInf(float64(x), 0) {
				return dst, fmt.Errorf("%w: element %d is %v, too large for %s", ErrConvert, i, x, d)
			}
			dst = binary.LittleEndian.AppendUint16(dst, h)
		}
	default:
		return dst, fmt.Errorf("%w: fp32 to %s", ErrConvert, d)
	}
	return dst, nil
}

// A carry out of the mantissa raises the exponent, which is what rounding up means; from the largest number it gives infinity.

func toBF16(x float32) uint16 {
	b := math.Float32bits(x)
	if x != x {
		return uint16(b>>16) | 0x40
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

func toF16(x float32) uint16 {
	b := math.Float32bits(x)
	sign, m := uint16(b>>16&0x8000), b&0x7fffffff
	const least = (127 - 14) << 23 // 2⁻¹⁴, the least normal number
	switch {
	case x != x:
		return sign | 0x7e00 | uint16(m>>13&0x1ff)
	case m >= (127+16)<<23:
		return sign | 0x7c00
	case m >= least:
		m -= (127 - 15) << 23
		return sign | uint16((m+0xfff+m>>13&1)>>13)
	}
	// Denormal: a whole number of 2⁻²⁴. At 2⁻¹⁵ ≤ |x| the mantissa's 24 bits lose 14, and one more for each power of two below.
	shift := min(126-m>>23, 31)
	m = m&0x7fffff | 0x800000
	return sign | uint16((m+(1<<(shift-1)-1)+m>>shift&1)>>shift)
}

func fromF16(h uint16) float32 {
	sign, m := uint32(h&0x8000)<<16, uint32(h&0x7fff)
	switch {
	case m > 0x7c00:
		m = 0x7fc00000 | m<<13
	case m == 0x7c00:
		m = 0x7f800000
	case m < 0x400:
		m = math.Float32bits(float32(m) * 0x1p-24)
	default:
		m = m<<13 + (127-15)<<23
	}
	return math.Float32frombits(sign | m)
}
