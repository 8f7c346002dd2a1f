package limit

// Flops is what one turn of FMA computes, or half a turn with AVX-512: 12 independent chains of vectors of 8, as many as two units of latency 4 or 5 need, and
// two operations for each element.
const Flops = 12 * 8 * 2

// piece is the bytes that one call of a loop handles. A loop cannot be interrupted, so it must not last: a garbage collection would
// wait for it.
const piece = 256 << 10

// block is the bytes of one turn of the memory loops, which handle whole turns.
const block = 128

// A Copier is one way to copy.
type Copier struct {
	Name string
	Copy func(dst, src []byte)
}
