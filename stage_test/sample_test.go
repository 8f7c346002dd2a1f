//go:build !soak

package stagetest

// soaking multiplies the number of drawn cells: 1 but under -tags soak.
const soaking = 1
