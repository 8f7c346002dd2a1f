package f32

import "math"

// ToBF16 rounds x to bfloat16, to nearest even. NaN keeps its sign and upper payload and becomes quiet.
func ToBF16(x float32) uint16 {
	b := math.Float32bits(x)
	if x != x {
		return uint16(b>>16) | 0x40
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

// FromBF16 is exact.
func FromBF16(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// ToF16 rounds x to IEEE half precision, to nearest even, denormals included; |x| ≥ 65520 gives ±Inf. NaN becomes quiet.
func ToF16(x float32) uint16 {
	b := math.Float32bits(x)
	sign := uint16(b >> 16 & 0x8000)
	b &= 0x7fffffff
	switch {
	case b > 0x7f800000:
		return sign | 0x7e00 | uint16(b>>13&0x1ff)
	case b >= 0x477ff000: // 65520, half way from the largest finite number to the next
		return sign | 0x7c00
	case b < 0x38800000: // below 2⁻¹⁴: a denormal, whose last bit is 2⁻²⁴
		// Adding 1/2 leaves a sum with last bit 2⁻²⁴, rounded by the hardware.
		return sign | uint16(math.Float32bits(math.Float32frombits(b)+0.5)-0x3f000000)
	}
	b += 0xfff + b>>13&1 // may carry into the exponent, which is right
	return sign | uint16(b>>13-(127-15)<<10)
}

// FromF16 is exact; NaN becomes quiet.
func FromF16(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	m := uint32(h & 0x7fff)
	switch {
	case m > 0x7c00:
		return math.Float32frombits(sign | 0x7fc00000 | m<<13)
	case m == 0x7c00:
		return math.Float32frombits(sign | 0x7f800000)
	case m < 0x400:
		return math.Float32frombits(sign | math.Float32bits(float32(m)*0x1p-24))
	}
	return math.Float32frombits(sign | (m<<13 + (127-15)<<23))
}
