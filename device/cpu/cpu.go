package cpu

import (
	"fmt"
	"sync"

	"zeroshard/device"
	"zeroshard/internal/pages"
)

// Options of New. The zero value is ready to use.
type Options struct {
	Name string // "" = "cpu"
}

// Device is one rank's share of the CPU. It implements device.Device and is safe for concurrent use.
type Device struct {
	name string

	mu      sync.Mutex
	closed  bool
	used    int64
	peak    int64
	blocks  map[*block]struct{}
	streams []*stream
}

// block is memory as Alloc gave it. mapped is what the operating system gave: whole pages.
type block struct {
	dev    *Device
	bytes  []byte
	mapped []byte
}

func (b *block) Size() int64   { return int64(len(b.bytes)) }
func (b *block) Bytes() []byte { return b.bytes }

// New returns a device with no memory and no streams.
func New(o Options) *Device {
	if o.Name == "" {
		o.Name = "cpu"
	}
	return &Device{name: o.Name, blocks: map[*block]struct{}{}}
}

// Name is the name given to New.
func (d *Device) Name() string { return d.name }

// Alloc maps bytes of zeroed memory, aligned to a page. An error wraps device.ErrMemory, or device.ErrClosed.
func (d *Device) Alloc(bytes int64) (device.Mem, error) {
	if bytes < 0 {
		return nil, fmt.Errorf("device: %s: allocation of %d bytes: %w", d.name, bytes, device.ErrArgument)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, fmt.Errorf("device: %s: allocation of %d bytes: %w", d.name, bytes, device.ErrClosed)
	}
	b := &block{dev: d}
	if bytes > 0 {
		mapped, err := pages.Map(bytes)
		if err != nil {
			return nil, fmt.Errorf("device: %s: allocation of %d bytes, %d are in use: %w: %w", d.name, bytes, d.used, device.ErrMemory, err)
		}
		b.mapped, b.bytes = mapped, mapped[:bytes:bytes]
	}
	d.blocks[b] = struct{}{}
	d.used += bytes
	d.peak = max(d.peak, d.used)
	return b, nil
}

// Free unmaps m. Memory of another device, or freed already, is an error that wraps device.ErrArgument; after Close, which
// freed everything, it is no error.
func (d *Device) Free(m device.Mem) error {
	b, ok := m.(*block)
	if !ok || b.dev != d {
		return fmt.Errorf("device: %s: free of memory that is not this device's: %w", d.name, device.ErrArgument)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	if _, ok := d.blocks[b]; !ok {
		return fmt.Errorf("device: %s: second free of a block: %w", d.name, device.ErrArgument)
	}
	return d.release(b)
}

// release gives b back. Its bytes become nil, so that a late reader fails with a bounds error and not a fault.
func (d *Device) release(b *block) error {
	delete(d.blocks, b)
	d.used -= b.Size()
	mapped := b.mapped
	b.mapped, b.bytes = nil, nil
	if mapped == nil {
		return nil
	}
	if err := pages.Unmap(mapped); err != nil {
		return fmt.Errorf("device: %s: unmap of %d bytes: %w", d.name, len(mapped), err)
	}
	return nil
}

// Copy appends a copy between buffers that the CPU can address.
func (d *Device) Copy(s device.Stream, dst, src device.Buffer) error {
	if err := device.CheckCopy(dst, src); err != nil {
		return err
	}
	if dst.Len == 0 {
		return nil
	}
	to, from := dst.Raw(), src.Raw()
	if to == nil || from == nil {
		return fmt.Errorf("device: %s: copy of memory that the CPU cannot address: %w", d.name, device.ErrArgument)
	}
	if s, ok := s.(*stream); ok {
		s.push(entry{kind: copyEntry, label: "copy", dst: to, src: from})
		return nil
	}
	s.Do("copy", func() error { copy(to, from); return nil })
	return nil
}

// NewStream starts a stream: one goroutine, until Close.
func (d *Device) NewStream(name string) (device.Stream, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, fmt.Errorf("device: %s: new stream %q: %w", d.name, name, device.ErrClosed)
	}
	s := newStream(name)
	d.streams = append(d.streams, s)
	return s, nil
}

// Used is the bytes in use, as asked for.
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

// Close skips what is pending, waits for running tasks and frees all memory. It must not be called from a task. A
// second Close does nothing.
func (d *Device) Close() error {
	d.mu.Lock()
	streams := d.streams
	d.closed, d.streams = true, nil
	d.mu.Unlock()

	// All streams learn of it before one is waited for: a stream may be waiting for another one's event.
	for _, s := range streams {
		s.close()
	}
	for _, s := range streams {
		<-s.ended
	}

	d.mu.Lock()
	defer d.mu.Unlock()
	var first error
	for b := range d.blocks {
		if err := d.release(b); err != nil && first == nil {
			first = err
		}
	}
	return first
}
