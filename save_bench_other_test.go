//go:build !linux

package zeroshard_test

import (
	"os"
	"testing"
)

// openDirect opens a file: this test knows no direct I/O here.
func openDirect(path string) (*os.File, error) { return os.Open(path) }

func forget(b *testing.B, _ string) { b.Helper() }
