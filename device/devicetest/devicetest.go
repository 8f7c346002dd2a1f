package devicetest

import (
	"testing"

	"go.uber.org/goleak"

	"zeroshard/device"
)

// Options say what the suite cannot ask of a backend.
type Options struct {
	// Inert: the device does not run tasks and its memory has no bytes.
	Inert bool
}

// Counter is a device that counts its memory, as all of this project do.
type Counter interface {
	Used() int64
	Peak() int64
}

// Run tests the devices that open returns. The suite closes them, and demands that no goroutine is left then.
func Run(t *testing.T, open func(t testing.TB) device.Device, o Options) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if c.active && o.Inert {
				t.Skip("the device is inert: it runs no tasks and has no bytes")
			}
			leaks := goleak.IgnoreCurrent()
			dev := open(t)
			c.run(t, dev)
			if err := dev.Close(); err != nil {
				t.Errorf("Close: %v", err)
			}
			if c, ok := dev.(Counter); ok && c.Used() != 0 {
				t.Errorf("%d bytes are in use after Close", c.Used())
			}
			goleak.VerifyNone(t, leaks)
		})
	}
}

// cases are the suite. active ones need tasks that run and memory with bytes.
var cases = []struct {
	name   string
	active bool
	run    func(*testing.T, device.Device)
}{
	{"memory/sizes", false, memorySizes},
	{"memory/refused", false, memoryRefused},
	{"memory/counted", false, memoryCounted},
	{"memory/free", false, memoryFree},
	{"memory/zeroed and aligned", true, memoryZeroed},
	{"buffer/views share bytes", true, bufferViews},
	{"stream/order", true, streamOrder},
	{"stream/more than the queue holds", true, streamFull},
	{"stream/tasks run beside the caller", true, streamAsync},
	{"stream/given by many goroutines", true, streamShared},
	{"event/zero has happened", false, eventZero},
	{"event/orders streams", true, eventOrder},
	{"event/own past", false, eventOwn},
	{"event/await", true, eventAwait},
	{"error/sticks", true, errorSticks},
	{"error/reaches waiters", true, errorReaches},
	{"error/own error stays", true, errorOwn},
	{"error/not before it happened", true, errorBefore},
	{"panic/is an error", true, panicError},
	{"panic/of an error unwraps", true, panicUnwraps},
	{"panic/Goexit does not hang", true, goexit},
	{"copy/there and back", true, copyRoundTrip},
	{"copy/in stream order", true, copyOrder},
	{"copy/refused", false, copyRefused},
	{"close/skips what is pending", true, closeSkips},
	{"close/wakes who awaits", true, closeWakes},
	{"close/unblocks a full stream", true, closeFull},
	{"close/refuses what comes later", false, closeRefuses},
	{"close/twice", false, closeTwice},
	{"close/waiting streams", true, closeWaiting},
}

// stream returns a new stream or ends the test.
func stream(t testing.TB, dev device.Device, name string) device.Stream {
	t.Helper()
	s, err := dev.NewStream(name)
	if err != nil {
		t.Fatalf("NewStream(%q): %v", name, err)
	}
	return s
}

// floats returns a buffer of n fp32 or ends the test.
func floats(t testing.TB, dev device.Device, n int) device.Buffer {
	t.Helper()
	m, err := dev.Alloc(int64(n) * 4)
	if err != nil {
		t.Fatalf("Alloc(%d): %v", n*4, err)
	}
	return device.Buffer{Mem: m, Len: n, DType: device.F32}
}

// gate returns a task that waits until open is called.
func gate() (task func() error, open func()) {
	c := make(chan struct{})
	return func() error { <-c; return nil }, func() { close(c) }
}

func nothing() error { return nil }
