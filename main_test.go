package zeroshard_test

import (
	"testing"

	"go.uber.org/goleak"
)

// No test may leave a goroutine behind: a rank that still waits, a stream that nobody closed.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
