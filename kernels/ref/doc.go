// Package ref is the readable truth of the kernels: plain loops, one file per family, one thread, no blocks, no scratch. What it
// computes is the definition; kernels/cpu must give the same bits. It never becomes fast.
//
// What "the same bits" rests on:
//
//  1. A product (MatMul, and those inside Attention) is one chain per element: acc = acc + a·b over k ascending, starting from
//     what the element is added to (C, then + Bias), or from Bias, or from 0. So blocks of k, however large, change no bit, and
//     adding chunk after chunk of k with Add is the same as one product.
//  2. A link of a chain is two roundings (New: plain Go, any machine) or one (NewFused: machines with fused multiply-add). This is
//     the only difference between the two; every other kernel always rounds each operation.
//  3. A sum over a row (softmax, layernorm, cross-entropy, attention's dO·O) has the order of f32.Lanes; a sum down a column
//     (biases, dw and db, embeddings) is a chain over rows ascending.
//  4. exp and log are f32's, division and square root are IEEE's.
//  5. Attention takes keys in blocks of f32.KeyBlock, and in each row only keys up to the query's own: what a later token holds,
//     NaN included, does not exist for it.
package ref
