package main

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
)

// signals turns INT, TERM, HUP and USR1 into a request: the first lets the step end and the state be saved, the second ends the process at once. HUP, which comes
// when the terminal closes, is let be where it was ignored from the start: nohup asks for that.
type signals struct {
	stop chan struct{} // closed by the first
	got  atomic.Int32  // which it was
	in   chan os.Signal
	done chan struct{}
}

// watch listens until close.
func watch(log io.Writer) *signals {
	s := &signals{stop: make(chan struct{}), in: make(chan os.Signal, 2), done: make(chan struct{})}
	signal.Notify(s.in, append([]os.Signal{syscall.SIGINT, syscall.SIGTERM}, more...)...)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(s.in, syscall.SIGHUP)
	}
	go func() {
		for n := 0; ; n++ {
			select {
			case <-s.done:
				return
			case sig := <-s.in:
				if n > 0 {
					os.Exit(exitCode(&signalError{sig.(syscall.Signal)}))
				}
				s.got.Store(int32(sig.(syscall.Signal)))
				close(s.stop) // before the message: nobody may be reading it
				fmt.Fprintf(log, "\nzeroshard: %v: saving and leaving after this step; again leaves at once\n", sig)
			}
		}
	}()
	return s
}

// err is the end of a run that was asked to stop, nil if it was not.
func (s *signals) err() error {
	if sig := syscall.Signal(s.got.Load()); sig != 0 {
		return &signalError{sig}
	}
	return nil
}

func (s *signals) close() {
	signal.Stop(s.in)
	close(s.done)
}
