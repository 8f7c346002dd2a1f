//go:build linux || darwin

package cpu

import "golang.org/x/sys/unix"

// mapPages returns at least bytes of zeroed memory in whole pages, outside the Go heap.
func mapPages(bytes int64) ([]byte, error) {
	n := roundUp(bytes)
	if n == 0 {
		return nil, unix.ENOMEM
	}
	return unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
}

func unmapPages(b []byte) error { return unix.Munmap(b) }
