// Package kernels is the seam to arithmetic: what the engine (Vector) and the models (Net) call. Backends: kernels/ref, the
// readable truth, and kernels/cpu, the fast one. A backend's test is one line: kerneltest.Run.
//
//  1. Sums run in an order fixed by shape: never by thread count, alignment, atomics or other rows of the batch.
//  2. Threads split outputs, never sums.
//  3. No kernel allocates; none returns an error: what can be wrong is checked before the run.
//  4. Rounding is written down: float32(a*b) + c where the compiler must not fuse.
package kernels
