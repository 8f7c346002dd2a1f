package inproc

// The Go runtime copies 1 MiB and more past the caches (amd64). What is small enough to stay in a cache until it is used is copied in
// pieces of moveBytes instead, which goes twice as fast.
const (
	cacheBytes = 8 << 20 // that a rank gathers
	moveBytes  = 256 << 10
)

// move copies src to dst, of the same length; small says that it stays in a cache.
func move(dst, src []byte, small bool) {
	for small && len(src) > moveBytes {
		copy(dst[:moveBytes], src)
		dst, src = dst[moveBytes:], src[moveBytes:]
	}
	copy(dst, src)
}
