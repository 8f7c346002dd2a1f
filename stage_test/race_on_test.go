//go:build race

package stagetest

// raced says that the race detector watches.
const raced = true
