// Package cpu is the fast backend of the kernels on a CPU. It gives the bits of kernels/ref, on any number of threads.
//
//  1. A Kernels serves one stream. Its threads split outputs, never sums.
//  2. A kernel runs where it is called, and is done when the call returns: the stream argument is not used.
//  3. A call allocates nothing: jobs are reused, and scratch has a size that does not depend on operands.
//  4. Wrong sizes panic before anything past an operand is read.
package cpu
