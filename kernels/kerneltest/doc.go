// Package kerneltest is the conformance suite of the kernels seam. A backend's test is two lines:
//
//	kerneltest.Run(t, func(p kernels.Pool) kerneltest.Kernels { return cpu.New(p) }, ref.New())
//	kerneltest.Gradients(t, cpu.New(nil))
//
// RunAll is Run for several that must agree, and Random adds shapes that nobody chose. They demand the truth's bits of every operand (any
// NaN equals any NaN): for odd and empty sizes, NaN, infinities, denormals and huge values, one to three threads, with operands that end
// or begin at a page that may not be touched. Gradients compares forward and backward with a float64 model and its finite differences, so
// that the truth itself is judged.
package kerneltest
