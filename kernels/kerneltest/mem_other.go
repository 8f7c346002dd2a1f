//go:build !unix

package kerneltest

// guarded returns n zeroed bytes of ordinary memory: this platform has no guard pages here.
func guarded(n int, _ bool) ([]byte, func()) { return make([]byte, n), func() {} }
