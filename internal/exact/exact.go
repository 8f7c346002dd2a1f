// Package exact adds float64 values without rounding, so that a sum does not depend on order, owner or world size.
//
// An accumulator is Words uint64 in plain memory (a device buffer can hold one): a two's-complement fixed-point number wide
// enough for the square of any float32 and 2⁶³ additions of them, and a last word with flags and a tag.
package exact
