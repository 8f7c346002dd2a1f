//go:build !linux && !darwin

package safetensors

// Map is Open where this package knows no mmap: Bytes gives no views.
func Map(path string) (*File, error) { return Open(path) }
