//go:build !linux && !darwin

package pages

import (
	"errors"
	"unsafe"
)

var errTooLarge = errors.New("larger than the address space")

// Map returns at least bytes of zeroed, aligned memory, nil for none. Where this package knows no mmap it comes from the Go heap: the
// collector does not scan it (it holds no pointers) but it counts it, and may keep it for a while after Unmap.
func Map(bytes int64) (mem []byte, err error) {
	if bytes == 0 {
		return nil, nil
	}
	n := RoundUp(bytes)
	if n == 0 || n+Alignment < n {
		return nil, errTooLarge
	}
	defer func() {
		if recover() != nil { // make panics on a length beyond the address space
			mem, err = nil, errTooLarge
		}
	}()
	raw := make([]byte, n+Alignment)
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(raw))) % Alignment
	return raw[skip : int(skip)+n : int(skip)+n], nil
}

// Unmap gives back what Map returned: all of it, not a part.
func Unmap([]byte) error { return nil }
