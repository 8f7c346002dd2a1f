//go:build !linux && !darwin

package cpu

import (
	"errors"
	"unsafe"
)

var errTooLarge = errors.New("larger than the address space")

// mapPages returns at least bytes of zeroed, aligned memory. Where this package knows no mmap it comes from the Go heap: the
// collector does not scan it (it holds no pointers) but it counts it, and may keep it for a while after Free.
func mapPages(bytes int64) (mem []byte, err error) {
	n := roundUp(bytes)
	if n == 0 || n+alignment < n {
		return nil, errTooLarge
	}
	defer func() {
		if recover() != nil { // make panics on a length beyond the address space
			mem, err = nil, errTooLarge
		}
	}()
	raw := make([]byte, n+alignment)
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(raw))) % alignment
	return raw[skip : int(skip)+n : int(skip)+n], nil
}

func unmapPages([]byte) error { return nil }
