//go:build linux || darwin

package pages

import "golang.org/x/sys/unix"

// Map returns at least bytes of zeroed memory in whole pages, nil for none. A page takes memory when it is first written.
func Map(bytes int64) ([]byte, error) {
	if bytes == 0 {
		return nil, nil
	}
	n := RoundUp(bytes)
	if n == 0 {
		return nil, unix.ENOMEM
	}
	mem, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err == nil && n >= hugePage {
		advise(mem)
	}
	return mem, err
}

// Unmap gives back what Map returned: all of it, not a part.
func Unmap(mem []byte) error {
	if mem == nil {
		return nil
	}
	return unix.Munmap(mem)
}
