package ref_test

import (
	"testing"

	"zeroshard/kernels"
	"zeroshard/kernels/kerneltest"
	"zeroshard/kernels/ref"
)

// The truth has nothing to be held to but finite differences; the suite runs on it to show that it reads nothing past its
// operands and allocates nothing.
func TestConformance(t *testing.T) {
	if testing.Short() {
		t.Skip("the truth against itself: every backend's test runs it too")
	}
	kerneltest.Run(t, func(kernels.Pool) kerneltest.Kernels { return ref.New() }, ref.New())
}

func TestGradients(t *testing.T) {
	kerneltest.Gradients(t, ref.New())
	kerneltest.Gradients(t, ref.NewFused())
}
