package null

import (
	"fmt"

	"zeroshard/device"
)

// stream counts labels in its device. Its work is done when it is given, so its events have always happened.
// The device's mutex guards it.
type stream struct {
	dev   *Device
	name  string
	given uint64
	err   error
	first uint64 // number of the entry that set err
}

func (s *stream) Do(label string, _ func() error) {
	s.dev.mu.Lock()
	defer s.dev.mu.Unlock()
	s.given++
	if s.dev.closed {
		s.fail(s.closedError())
		return
	}
	if s.err == nil {
		s.dev.tasks[label]++
	}
}

// Wait takes over the error of e's stream.
func (s *stream) Wait(e device.Event) {
	if e.Source == nil || e.Source == device.Source(s) {
		return
	}
	err := e.Await()
	s.dev.mu.Lock()
	defer s.dev.mu.Unlock()
	s.given++
	s.fail(err)
}

func (s *stream) Record() device.Event {
	s.dev.mu.Lock()
	defer s.dev.mu.Unlock()
	return device.Event{Source: s, Seq: s.given}
}

func (s *stream) Sync() error {
	s.dev.mu.Lock()
	defer s.dev.mu.Unlock()
	if s.err == nil && s.dev.closed {
		return s.closedError()
	}
	return s.err
}

// Await implements device.Source.
func (s *stream) Await(seq uint64) error {
	s.dev.mu.Lock()
	defer s.dev.mu.Unlock()
	if s.err != nil && s.first <= seq {
		return s.err
	}
	return nil
}

func (s *stream) fail(err error) {
	if s.err == nil && err != nil {
		s.err, s.first = err, s.given
	}
}

func (s *stream) closedError() error {
	return fmt.Errorf("device: stream %q: %w", s.name, device.ErrClosed)
}
