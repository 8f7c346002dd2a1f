// Package bench measures what the arithmetic, the collectives and whole steps reach of what the machine can do. It is the work behind
// "zeroshard bench", and names no backend: what it measures is passed in.
//
//  1. Contenders of a row run in turn, the loop that shows the machine's limit among them, and medians are compared: whatever slows the
//     machine for a while slows both sides.
//  2. A figure counts what the mathematics asks for. A product of (M,K) and (K,N) is 2·M·N·K operations, causal attention half of what
//     all pairs would cost; memory traffic is each operand read or written once. What an implementation does beyond that costs it.
//  3. The limit of arithmetic is multiply-adds from registers; of traffic, x += y over as many bytes as the operands take, so in the
//     same cache; of a collective, the fastest copy of the same bytes; of a step, all its model's operations at the multiply-add peak.
//  4. Rows are measured one after the other, and each frees its memory before the next.
package bench
