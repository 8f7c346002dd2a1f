// Package exact adds float64 values without rounding, so that a sum does not depend on order, owner or world size.
//
// An accumulator is [Words] uint64 in plain memory (a device buffer can hold one), all zero at the start: a two's-complement
// fixed-point number and a last word with flags and a tag. The number's lowest bit is worth 2⁻¹⁰⁷⁴, float64's smallest
// positive value, and 34 words reach to 2¹¹⁰¹: 2⁷⁷ additions of any finite float64 fit (Kulisch's long accumulator). So nothing
// is ever out of range, and there is no precondition to break. The engine's use, sums of squares of float32 by grains, needs
// 2⁻²⁹⁸ to 2²⁶³ of it: the square of a float32 is a multiple of 2⁻²⁹⁸ and exact in float64, and float64 sums of such
// multiples are again multiples, rounded or not.
//
//  1. The bits of an accumulator depend on the multiset of what was added, never on order or grouping.
//  2. Values that are not finite leave the number alone and set flags.
//  3. Nothing here allocates.
package exact
