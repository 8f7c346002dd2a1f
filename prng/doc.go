// Package prng gives random numbers as a pure function of a key and a counter: the i-th number of a stream is computed, not
// reached, so any rank can make any slice of any stream, in any order, and nothing depends on who does.
//
// The generator is Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", SC'11): a bijection
// of 128-bit counters under a 64-bit key. A [Key] is 128 bits: Lo is Philox's key, Hi the upper half of its counter,
// and the lower half counts blocks of four 32-bit words. So streams of different keys never share a (key, counter).
//
//	Uint64(i)    words 2i, 2i+1 (low word first)
//	Uniform(i)   word i
//	Normal(i)    words of the pair i/2: 2⌊i/2⌋ and 2⌊i/2⌋+1
//
// The three read the same words: use one kind per key.
//
//  1. Results are bit-identical on every platform: integers, and floats whose every operation is rounded explicitly.
//  2. Nothing here keeps state, allocates or depends on rank, world or thread.
package prng
