//go:build invariants

package invariants

// Enabled reports whether the program was built with the tag invariants. It is a constant, so that code under it
// vanishes from other builds.
const Enabled = true
