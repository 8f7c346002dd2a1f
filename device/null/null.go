package null

import (
	"fmt"
	"maps"
	"sync"

	"zeroshard/device"
)

// maxBytes keeps sums of a few allocations inside an int64.
const maxBytes = 1 << 62

// Device counts. It implements device.Device and is safe for concurrent use.
type Device struct {
	mu     sync.Mutex
	closed bool
	used   int64
	peak   int64
	copied int64
	tasks  map[string]int64
	blocks map[*block]struct{}
}

type block struct {
	dev  *Device
	size int64
}

func (b *block) Size() int64 { return b.size }

// New returns a device with nothing counted yet.
func New() *Device {
	return &Device{tasks: map[string]int64{}, blocks: map[*block]struct{}{}}
}

// Name is "null".
func (d *Device) Name() string { return "null" }

// Alloc counts bytes, up to 2^62 in use at a time.
func (d *Device) Alloc(bytes int64) (device.Mem, error) {
	if bytes < 0 {
		return nil, fmt.Errorf("device: null: allocation of %d bytes: %w", bytes, device.ErrArgument)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, fmt.Errorf("device: null: allocation of %d bytes: %w", bytes, device.ErrClosed)
	}
	if bytes > maxBytes-d.used {
		return nil, fmt.Errorf("device: null: allocation of %d bytes, %d are in use: %w", bytes, d.used, device.ErrMemory)
	}
	b := &block{dev: d, size: bytes}
	d.blocks[b] = struct{}{}
	d.used += bytes
	d.peak = max(d.peak, d.used)
	return b, nil
}

// Free takes m's bytes off the count. Memory of another device, or freed already, is an error that wraps
// device.ErrArgument; after Close it is no error.
func (d *Device) Free(m device.Mem) error {
	b, ok := m.(*block)
	if !ok || b.dev != d {
		return fmt.Errorf("device: null: free of memory that is not this device's: %w", device.ErrArgument)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	if _, ok := d.blocks[b]; !ok {
		return fmt.Errorf("device: null: second free of a block: %w", device.ErrArgument)
	}
	delete(d.blocks, b)
	d.used -= b.size
	return nil
}

// Copy counts the bytes of a copy that it does not make.
func (d *Device) Copy(s device.Stream, dst, src device.Buffer) error {
	if err := device.CheckCopy(dst, src); err != nil {
		return err
	}
	d.mu.Lock()
	d.copied += src.Bytes()
	d.mu.Unlock()
	s.Do("copy", nil)
	return nil
}

// NewStream returns a stream that skips every task and counts its label.
func (d *Device) NewStream(name string) (device.Stream, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, fmt.Errorf("device: null: new stream %q: %w", name, device.ErrClosed)
	}
	return &stream{dev: d, name: name}, nil
}

// Used is the bytes in use.
func (d *Device) Used() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.used
}

// Peak is the largest Used so far.
func (d *Device) Peak() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.peak
}

// Copied is the bytes of all copies.
func (d *Device) Copied() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.copied
}

// Tasks is the number of tasks given to all streams, by label; copies count as "copy".
func (d *Device) Tasks() map[string]int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.tasks)
}

// Close frees all memory. Streams refuse what comes later.
func (d *Device) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed, d.used = true, 0
	clear(d.blocks)
	return nil
}
