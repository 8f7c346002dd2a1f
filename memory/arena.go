package memory

import "zeroshard/device"

// Span is bytes with an owner: a buffer of the plan.
type Span struct {
	Kind  Kind
	Name  string // "h.3 gathered", "embed out mb0"
	Bytes int64
}

// Observer is told of every change. Calls come from one goroutine at a time. It must not allocate.
type Observer interface {
	// Reserve is called before the device is asked for bytes; an error refuses them.
	Reserve(name string, bytes int64) error
	// Release is called after bytes went back to the device.
	Release(name string, bytes int64)
	// Begin and End bracket the life of a span inside reserved memory.
	Begin(Span)
	End(Span)
}

// Arena gives out a device's memory, counts it, and tells observers. Every device byte of a rank passes it.
type Arena struct {
	dev       device.Device
	observers []Observer
}

// NewArena returns an arena over dev.
func NewArena(dev device.Device, observers ...Observer) *Arena {
	return &Arena{dev: dev, observers: observers}
}
