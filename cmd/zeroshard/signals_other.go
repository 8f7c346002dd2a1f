//go:build !unix

package main

import "os"

// more are the signals that not every system has.
var more []os.Signal
