package memory

import (
	"errors"
	"fmt"
	"sync/atomic"

	"zeroshard/device"
	"zeroshard/internal/invariants"
)

// Span is bytes with an owner: a buffer of the plan.
type Span struct {
	Kind  Kind
	Name  string // "h.3 gathered", "embed out mb0"
	Bytes int64
}

// Observer is told of every change. Calls come from one goroutine at a time. It must not allocate in Begin and End.
type Observer interface {
	// Reserve is called before the device is asked for bytes; an error refuses them.
	Reserve(name string, bytes int64) error
	// Release is called after bytes went back to the device, or were not given after all.
	Release(name string, bytes int64)
	// Begin and End bracket the life of a span inside reserved memory.
	Begin(Span)
	End(Span)
}

// Arena gives out a device's memory, counts it, and tells observers in the order in which they were given. Every device byte of a
// rank passes it. Its methods are called from one goroutine at a time, so the observers are too; only Used may be called at any time.
type Arena struct {
	dev       device.Device
	observers []Observer
	blocks    []reserved
	used      atomic.Int64
	closed    bool
}

// reserved is an entry of the arena's ledger.
type reserved struct {
	Block
	mem device.Mem
}

// NewArena returns an arena over dev.
func NewArena(dev device.Device, observers ...Observer) *Arena {
	return &Arena{dev: dev, observers: observers}
}

// Reserve asks the observers, then the device, for bytes of zeroed memory, which stay until Close. name says in tables who holds
// them. Its error is the first observer's that refuses (a *LimitError of a Limit), or wraps device.ErrMemory or ErrClosed.
func (a *Arena) Reserve(name string, bytes int64) (device.Mem, error) {
	if a.closed {
		return nil, fmt.Errorf("memory: reserve %d bytes for %q: %w", bytes, name, ErrClosed)
	}
	if bytes < 0 {
		return nil, fmt.Errorf("memory: reserve %d bytes for %q: %w", bytes, name, ErrSize)
	}
	for i, o := range a.observers {
		if err := o.Reserve(name, bytes); err != nil {
			a.release(i, name, bytes)
			return nil, err
		}
	}
	mem, err := a.dev.Alloc(bytes)
	if err != nil {
		a.release(len(a.observers), name, bytes)
		return nil, fmt.Errorf("memory: reserve %d bytes for %q: %w", bytes, name, err)
	}
	a.blocks = append(a.blocks, reserved{Block{name, bytes}, mem})
	a.used.Add(bytes)
	return mem, nil
}

// release tells the first n observers that bytes are gone.
func (a *Arena) release(n int, name string, bytes int64) {
	for _, o := range a.observers[:n] {
		o.Release(name, bytes)
	}
}

// Begin tells the observers that s is in use from now on.
func (a *Arena) Begin(s Span) {
	for _, o := range a.observers {
		o.Begin(s)
	}
}

// End tells the observers that s, which was begun, is free.
func (a *Arena) End(s Span) {
	for _, o := range a.observers {
		o.End(s)
	}
}

// Used is the bytes reserved.
func (a *Arena) Used() int64 { return a.used.Load() }

// Blocks is the ledger: what is reserved, in order.
func (a *Arena) Blocks() []Block {
	blocks := make([]Block, len(a.blocks))
	for i, r := range a.blocks {
		blocks[i] = r.Block
	}
	return blocks
}

// Close frees everything, last reserved first. No work that uses the memory may be pending. A second Close does nothing.
func (a *Arena) Close() error {
	a.closed = true
	var errs []error
	for i := len(a.blocks) - 1; i >= 0; i-- {
		r := a.blocks[i]
		if err := a.dev.Free(r.mem); err != nil {
			errs = append(errs, fmt.Errorf("memory: free %d bytes of %q: %w", r.Bytes, r.Name, err))
		}
		a.used.Add(-r.Bytes)
		a.release(len(a.observers), r.Name, r.Bytes)
	}
	a.blocks = nil
	invariants.Check(a.used.Load() == 0, "memory: %d bytes left after Close", a.used.Load())
	return errors.Join(errs...)
}
