package cpu_test

import (
	"errors"
	"slices"
	"testing"

	"zeroshard/device"
	"zeroshard/kernels"
	"zeroshard/kernels/cpu"
	"zeroshard/kernels/kerneltest"
	"zeroshard/kernels/ref"
)

func TestConformance(t *testing.T) {
	kerneltest.Run(t, func(p kernels.Pool) kerneltest.Kernels { return cpu.New(p) }, ref.New())
}

func TestGradients(t *testing.T) { kerneltest.Gradients(t, cpu.New(nil)) }

type mem []byte

func (m mem) Size() int64   { return int64(len(m)) }
func (m mem) Bytes() []byte { return m }

// dark is memory that the CPU cannot address.
type dark int64

func (d dark) Size() int64 { return int64(d) }

func TestUseScratch(t *testing.T) {
	k := cpu.New(nil)
	if err := k.UseScratch(mem(make([]byte, k.Scratch()-1))); !errors.Is(err, device.ErrMemory) {
		t.Errorf("too small: %v", err)
	}
	if err := k.UseScratch(dark(k.Scratch())); !errors.Is(err, device.ErrMemory) {
		t.Errorf("not host memory: %v", err)
	}
	scratch := mem(make([]byte, k.Scratch()))
	if err := k.UseScratch(scratch); err != nil {
		t.Fatal(err)
	}
	// A product with a transposed B of many rows has to pack: its pack must lie in the memory given.
	m := kernels.MatMul{C: floats(16 * 16), A: floats(16 * 16), B: floats(16 * 16), M: 16, N: 16, K: 16, TransB: true}
	k.MatMul(nil, m)
	if !slices.ContainsFunc(scratch, func(b byte) bool { return b != 0 }) {
		t.Error("the scratch was not used")
	}
}
