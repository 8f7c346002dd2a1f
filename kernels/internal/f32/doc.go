// Package f32 has the float32 arithmetic that every CPU backend must agree on to the bit: exp, log, fused multiply-add, the
// order of a row's sum, conversions from and to 16 bits.
//
//  1. Every operation is rounded where it is written: float32(a*b) + c is two roundings on every platform.
//  2. Nothing depends on the C library, on math's assembly, or on the rounding and denormal modes of vector units: results
//     that would be denormal are zero where a function says so.
//  3. NaN in, NaN out. Which NaN is not promised.
package f32
