//go:build linux || darwin

package safetensors

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Map is Open with the file mapped into memory: reads are copies, and Bytes gives views. Nobody may shorten the file while it is
// mapped: a read beyond its end kills the process.
func Map(path string) (*File, error) {
	osf, size, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer osf.Close() // a mapping outlives its file descriptor
	f, err := NewReader(osf, size, path)
	if err != nil {
		return nil, err
	}
	if int64(int(size)) != size {
		return nil, fmt.Errorf("safetensors: %s has %d bytes, more than this machine can map", path, size)
	}
	mem, err := unix.Mmap(int(osf.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("safetensors: mapping %s: %w", path, err)
	}
	f.r, f.mem, f.close = nil, mem, func() error { return unix.Munmap(mem) }
	return f, nil
}
