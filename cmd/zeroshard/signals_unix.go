//go:build unix

package main

import (
	"os"
	"syscall"
)

// more are the signals that not every system has: batch systems send USR1 some time before they end a job.
var more = []os.Signal{syscall.SIGUSR1}
