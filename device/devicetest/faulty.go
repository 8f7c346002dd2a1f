package devicetest

import "zeroshard/device"

// Hook is called on the stream's goroutine before a task runs. Its error takes the place of the task's, and it may panic.
type Hook func(label string) error

// Wrap returns dev with h called before every task and every copy (whose label is "copy").
func Wrap(dev device.Device, h Hook) device.Device { return &faulty{dev, h} }

type faulty struct {
	device.Device
	hook Hook
}

type faultyStream struct {
	device.Stream
	hook Hook
}

func (d *faulty) NewStream(name string) (device.Stream, error) {
	s, err := d.Device.NewStream(name)
	if err != nil {
		return nil, err
	}
	return &faultyStream{s, d.hook}, nil
}

func (d *faulty) Copy(s device.Stream, dst, src device.Buffer) error {
	if f, ok := s.(*faultyStream); ok {
		f.Stream.Do("copy", func() error { return f.hook("copy") })
		s = f.Stream
	}
	return d.Device.Copy(s, dst, src)
}

// Used is the wrapped device's, 0 where it does not count.
func (d *faulty) Used() int64 {
	if c, ok := d.Device.(Counter); ok {
		return c.Used()
	}
	return 0
}

// Peak is the wrapped device's, 0 where it does not count.
func (d *faulty) Peak() int64 {
	if c, ok := d.Device.(Counter); ok {
		return c.Peak()
	}
	return 0
}

func (s *faultyStream) Do(label string, task func() error) {
	s.Stream.Do(label, func() error {
		if err := s.hook(label); err != nil {
			return err
		}
		return task()
	})
}
