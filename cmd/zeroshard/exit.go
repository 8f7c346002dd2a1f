package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"zeroshard/checkpoint"
	"zeroshard/checkpoint/safetensors"
	"zeroshard/data"
	"zeroshard/data/prepare"
	"zeroshard/data/tokenizer"
	"zeroshard/device"
	"zeroshard/memory"
	"zeroshard/models/gpt"
	"zeroshard/models/gpt/hf"
	"zeroshard/offload"
	"zeroshard/optim"
	"zeroshard/report"
	"zeroshard/shard"
	"zeroshard/train"
	"zeroshard/zero"
)

// The exit codes, which scripts rely on.
const (
	exitOK     = 0
	exitFailed = 1   // the run failed
	exitUsage  = 2   // usage or configuration
	exitFile   = 3   // a file that cannot be read or written, or is corrupt
	exitNoFit  = 4   // does not fit into the device, or the host
	exitPeer   = 5   // a peer was lost or a wait timed out
	exitSaved  = 75  // stopped on request, state saved
	exitInt    = 130 // ended by INT without saved state
	exitTerm   = 143 // ended by TERM, HUP or USR1 without saved state
)

// exitCodes is the only place that knows which error means which code: the first row that matches decides.
var exitCodes = [...]struct {
	code  int
	match func(error) bool
}{
	{exitSaved, as[*savedError]},
	{exitInt, signalled(syscall.SIGINT)},
	{exitTerm, as[*signalError]},
	{exitUsage, as[*usageError]},
	{exitFile, as[*outputError]},
	{exitFile, is(hf.ErrFolder, hf.ErrTensors)}, // a folder of others is a file, whatever is wrong in it
	{exitNoFit, is(memory.ErrLimit, device.ErrMemory)},
	{exitUsage, is(zero.ErrStrategy, zero.ErrOptions, shard.ErrWorld, shard.ErrWindows, shard.ErrMesh, gpt.ErrConfig, gpt.ErrShape)},
	{exitUsage, is(optim.ErrOptimizer, data.ErrMismatch, train.ErrExists, checkpoint.ErrMismatch)},
	{exitUsage, is(hf.ErrUnsupported, hf.ErrExport)},
	{exitFile, is(checkpoint.ErrCorrupt, checkpoint.ErrNone, checkpoint.ErrSave, checkpoint.ErrExists, safetensors.ErrCorrupt)},
	{exitFile, is(data.ErrCorrupt, data.ErrNoCorpus, report.ErrRun, report.ErrMetrics)},
	{exitFile, is(offload.ErrCorrupt, offload.ErrTorn, io.ErrUnexpectedEOF)},
	{exitUsage, is(tokenizer.ErrUnknown, prepare.ErrOptions, prepare.ErrExists, prepare.ErrEmpty, prepare.ErrID)},
	{exitFile, is(tokenizer.ErrFolder, prepare.ErrInput)},
	{exitFile, as[*fs.PathError]},
	{exitFile, as[*os.LinkError]},
	{exitFile, as[*os.SyscallError]},
	{exitNoFit, is(offload.ErrSpace)}, // host memory
}

func exitCode(err error) int {
	if err == nil {
		return exitOK
	}
	for _, row := range exitCodes {
		if row.match(err) {
			return row.code
		}
	}
	return exitFailed
}

func is(targets ...error) func(error) bool {
	return func(err error) bool {
		for _, t := range targets {
			if errors.Is(err, t) {
				return true
			}
		}
		return false
	}
}

func as[T error](err error) bool {
	var t T
	return errors.As(err, &t)
}

// usageError is a command line that cannot mean anything.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func usagef(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

// signalError is the end of a run that was asked to stop.
type signalError struct{ signal syscall.Signal }

func (e *signalError) Error() string { return "stopped by " + e.signal.String() }

func signalled(s syscall.Signal) func(error) bool {
	return func(err error) bool {
		var e *signalError
		return errors.As(err, &e) && e.signal == s
	}
}
