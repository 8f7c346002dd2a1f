//go:build unix

package kerneltest

import (
	"runtime/debug"
	"testing"
	"unsafe"
)

// past reads the byte at offset i of p, out of range or not.
func past(p []byte, i int) byte { return *(*byte)(unsafe.Add(unsafe.Pointer(unsafe.SliceData(p)), i)) }

func TestOperandsTouchTheGuards(t *testing.T) {
	touches := func(front bool, read func(p []byte) byte) (faulted bool) {
		defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
		defer func() { faulted = recover() != nil }()
		m := newMem(1, numbers, front)
		defer m.release()
		read(m.f32(5).Raw())
		return false
	}
	if !touches(false, func(p []byte) byte { return past(p, len(p)) }) {
		t.Error("the byte after an operand can be read")
	}
	if !touches(true, func(p []byte) byte { return past(p, -1) }) {
		t.Error("the byte before an operand can be read")
	}
	if touches(false, func(p []byte) byte { return past(p, len(p)-1) }) {
		t.Error("an operand's own byte cannot be read")
	}
}
