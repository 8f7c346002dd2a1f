package device

import "fmt"

// DType is the type of a buffer's elements.
type DType uint8

// The element types. BF16 and F16 are storage and communication formats.
const (
	F32 DType = iota + 1
	BF16
	F16
	F64
	I32
	U64
)

var dtypes = [...]struct {
	name string
	size int
}{F32: {"fp32", 4}, BF16: {"bf16", 2}, F16: {"fp16", 2}, F64: {"fp64", 8}, I32: {"int32", 4}, U64: {"uint64", 8}}

// Size is the number of bytes of one element.
func (d DType) Size() int { return dtypes[d].size }

func (d DType) String() string {
	if int(d) >= len(dtypes) || d == 0 {
		return fmt.Sprintf("DType(%d)", uint8(d))
	}
	return dtypes[d].name
}

// Mem is one block of device memory as Device.Alloc gave it, zeroed.
type Mem interface {
	// Size is the number of bytes asked for.
	Size() int64
}

// HostMem is memory that the CPU can address. Memory of a GPU, or of the null device, is not.
type HostMem interface {
	Mem
	Bytes() []byte
}

// Stream runs tasks in order, asynchronously to the caller. On a CPU a goroutine runs them; on a GPU a task
// enqueues kernels.
//
// The first error (or panic, which becomes a *PanicError) sticks: later tasks are skipped, Sync returns it, and its
// events carry it to every stream that waits for them.
type Stream interface {
	// Do appends a task. It may block while the stream's queue is full. It allocates nothing.
	Do(label string, task func() error)
	// Wait makes later tasks of this stream start only after e.
	Wait(e Event)
	// Record returns an event: all that was given to this stream so far is done.
	Record() Event
	// Sync blocks until all that was given to the stream is done and returns the stream's first error.
	Sync() error
}

// Source is what an event points back to: a stream that knows how far it has come.
type Source interface {
	// Await blocks the caller until entry seq is done and returns the stream's first error up to there.
	Await(seq uint64) error
}

// Event is a point in a stream's work: a value, so that recording one allocates nothing. The zero Event has happened.
type Event struct {
	Source Source
	Seq    uint64
}

// Await blocks the calling goroutine until e has happened.
func (e Event) Await() error {
	if e.Source == nil {
		return nil
	}
	return e.Source.Await(e.Seq)
}

// Device is the seam to hardware. One Device belongs to one rank.
type Device interface {
	Name() string
	// Alloc returns zeroed memory, aligned to at least 4096 bytes, for the life of the device or until Free.
	Alloc(bytes int64) (Mem, error)
	// Free gives memory back. No work that uses it may be pending.
	Free(Mem) error
	// Copy copies src to dst inside s's order: same dtype, same length, on this device or in host memory.
	Copy(s Stream, dst, src Buffer) error
	// NewStream starts a stream. Close ends it.
	NewStream(name string) (Stream, error)
	// Close ends all streams (pending tasks are skipped) and frees all memory.
	Close() error
}
