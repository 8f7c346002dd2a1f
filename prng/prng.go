package prng

// Key names a stream of random numbers. The zero Key is a key like any other.
type Key struct{ Hi, Lo uint64 }
