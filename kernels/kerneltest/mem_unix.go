//go:build unix

package kerneltest

import (
	"os"

	"golang.org/x/sys/unix"
)

// guarded returns n zeroed bytes between two pages that may not be touched, beside the first of them (front) or the second.
func guarded(n int, front bool) ([]byte, func()) {
	page := os.Getpagesize()
	size := (n + page - 1) / page * page
	all, err := unix.Mmap(-1, 0, size+2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		panic(err)
	}
	for _, guard := range [][]byte{all[:page], all[page+size:]} {
		if err := unix.Mprotect(guard, unix.PROT_NONE); err != nil {
			panic(err)
		}
	}
	lo := page + size - n
	if front {
		lo = page
	}
	return all[lo : lo+n : lo+n], func() { _ = unix.Munmap(all) }
}
