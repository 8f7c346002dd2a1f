package cpu

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"zeroshard/device"
)

// queue is the number of entries that a stream holds before Do blocks.
const queue = 1024

var errGoexit = errors.New("device: a task ended its goroutine (runtime.Goexit) instead of returning")

type entryKind uint8

const (
	taskEntry entryKind = iota
	waitEntry
	copyEntry
)

// entry is one thing for the stream to do. Copies and waits are entries of their own rather than tasks, because a closure
// would be garbage in every step.
type entry struct {
	kind     entryKind
	label    string
	task     func() error
	event    device.Event
	dst, src []byte
}

// stream is a ring of entries and one goroutine that works through it.
//
// Entries are numbered from 1. given counts those handed in, done those dealt with, so entry k lies in ring[k%queue], and
// an event is nothing but a value of given: it has happened when done has reached it. An entry is dealt with when it
// was run, or skipped because the stream has failed or was closed: done always reaches given, so nobody waits forever.
// mu guards everything below it.
type stream struct {
	name  string
	ended chan struct{}

	mu       sync.Mutex
	work     sync.Cond // signalled when given grows or closed is set; only the goroutine waits
	progress sync.Cond // signalled when done grows and waiters > 0
	waiters  int
	given    uint64
	done     uint64
	closed   bool
	err      error
	failed   uint64 // number of the entry that set err
	ring     [queue]entry
}

func newStream(name string) *stream {
	s := &stream{name: name, ended: make(chan struct{})}
	s.work.L, s.progress.L = &s.mu, &s.mu
	go s.loop()
	return s
}

func (s *stream) Do(label string, task func() error) {
	s.push(entry{kind: taskEntry, label: label, task: task})
}

func (s *stream) Wait(e device.Event) {
	if e.Source == nil || e.Source == device.Source(s) { // its own past
		return
	}
	s.push(entry{kind: waitEntry, event: e})
}

func (s *stream) Record() device.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return device.Event{Source: s, Seq: s.given}
}

func (s *stream) Sync() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.await(s.given)
	if s.err == nil && s.closed {
		return s.closedError()
	}
	return s.err
}

// Await implements device.Source.
func (s *stream) Await(seq uint64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.await(seq)
	if s.err != nil && s.failed <= seq {
		return s.err
	}
	return nil
}

// await blocks until entry seq is dealt with. s.mu is held.
func (s *stream) await(seq uint64) {
	s.waiters++
	for s.done < seq {
		s.progress.Wait()
	}
	s.waiters--
}

func (s *stream) push(e entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.closed && s.given-s.done >= queue {
		s.waiters++
		s.progress.Wait()
		s.waiters--
	}
	s.given++
	if s.closed {
		// The entry is dropped, but keeps its number, so that events recorded later carry the error. While the goroutine
		// lives it passes the number itself, without a look at the ring.
		if s.over() {
			s.fail(s.given, s.closedError())
			s.done = s.given
		}
		return
	}
	s.ring[s.given%queue] = e
	s.work.Signal()
}

// over reports whether the goroutine has ended. s.mu is held.
func (s *stream) over() bool {
	select {
	case <-s.ended:
		return true
	default:
		return false
	}
}

// fail keeps the first error. s.mu is held.
func (s *stream) fail(seq uint64, err error) {
	if err != nil && s.err == nil {
		s.err, s.failed = err, seq
	}
}

func (s *stream) closedError() error {
	return fmt.Errorf("device: stream %q: %w", s.name, device.ErrClosed)
}

// close makes the goroutine skip what is left and end.
func (s *stream) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.work.Signal()
	s.progress.Broadcast()
}

// loop is the stream's goroutine.
func (s *stream) loop() {
	for {
		s.mu.Lock()
		seq := s.done + 1
		for !s.closed && s.given < seq {
			s.work.Wait()
		}
		if s.given < seq {
			close(s.ended)
			s.mu.Unlock()
			return
		}
		if s.closed {
			s.fail(seq, s.closedError())
		}
		e, skip := s.ring[seq%queue], s.err != nil
		s.ring[seq%queue] = entry{} // what the task holds may be collected
		s.mu.Unlock()

		if skip {
			s.finish(seq, nil)
		} else if !s.run(seq, &e) {
			return
		}
	}
}

// run runs one entry and finishes it. It returns only where the goroutine survives; where the task ends it by
// runtime.Goexit (as testing.T.FailNow does), another takes over.
func (s *stream) run(seq uint64, e *entry) bool {
	returned := false
	defer func() {
		if returned {
			return
		}
		if v := recover(); v != nil {
			s.finish(seq, &device.PanicError{Label: e.label, Value: v, Stack: debug.Stack()})
		} else {
			s.finish(seq, fmt.Errorf("%w: %q", errGoexit, e.label))
		}
		go s.loop()
	}()
	var err error
	switch e.kind {
	case taskEntry:
		err = e.task()
	case waitEntry:
		err = e.event.Await()
	case copyEntry:
		copy(e.dst, e.src)
	}
	returned = true
	s.finish(seq, err)
	return true
}

func (s *stream) finish(seq uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail(seq, err)
	s.done = seq
	if s.waiters > 0 {
		s.progress.Broadcast()
	}
}
