package memory

import (
	"sync"

	"zeroshard/internal/invariants"
)

// Usage is what a Tracker counted. All figures are bytes.
type Usage struct {
	Reserved     int64  // from the device, now
	PeakReserved int64  // the largest Reserved
	Live         ByKind // in begun spans, now
	AtPeak       ByKind // Live at the moment when its sum was largest; of several such moments, the first
	Max          ByKind // the largest Live of each kind; its sum may never have been live at once
}

// Tracker counts reserved and live bytes. It is an Observer; Snapshot and Peak may be called at any time from any goroutine.
type Tracker struct {
	mu      sync.Mutex
	usage   Usage
	live    int64 // sum of usage.Live
	highest int64 // sum of usage.AtPeak
}

// NewTracker returns a tracker that has counted nothing.
func NewTracker() *Tracker { return &Tracker{} }

// Reserve counts and never refuses.
func (t *Tracker) Reserve(_ string, bytes int64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.usage.Reserved += bytes
	t.usage.PeakReserved = max(t.usage.PeakReserved, t.usage.Reserved)
	return nil
}

// Release counts.
func (t *Tracker) Release(name string, bytes int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.usage.Reserved -= bytes
	if invariants.Enabled && t.usage.Reserved < 0 {
		invariants.Check(false, "memory: %q released %d bytes, more than was reserved", name, bytes)
	}
}

// Begin counts.
func (t *Tracker) Begin(s Span) {
	t.mu.Lock()
	defer t.mu.Unlock()
	u := &t.usage
	u.Live[s.Kind] += s.Bytes
	u.Max[s.Kind] = max(u.Max[s.Kind], u.Live[s.Kind])
	t.live += s.Bytes
	if t.live > t.highest {
		t.highest, u.AtPeak = t.live, u.Live
	}
}

// End counts.
func (t *Tracker) End(s Span) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.usage.Live[s.Kind] -= s.Bytes
	t.live -= s.Bytes
	if invariants.Enabled && t.usage.Live[s.Kind] < 0 {
		invariants.Check(false, "memory: %q ended %d bytes of kind %v, more than were begun", s.Name, s.Bytes, s.Kind)
	}
}

// Snapshot returns what was counted so far.
func (t *Tracker) Snapshot() Usage {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.usage
}

// Peak is Snapshot's PeakReserved and AtPeak.
func (t *Tracker) Peak() (reserved int64, live ByKind) {
	u := t.Snapshot()
	return u.PeakReserved, u.AtPeak
}
