//go:build soak

package stagetest

// soaking multiplies the number of drawn cells.
const soaking = 20
