package offload

import (
	"context"
	"fmt"

	"zeroshard/device"
)

// Key names a slice that rests in a tier: one rank's part of one state of one flat parameter.
type Key struct {
	Flat  string // "h.3"
	State string // "parameter", "gradient", "m", "v", "carry 1"
}

func (k Key) String() string { return fmt.Sprintf("flat %s, state %s", k.Flat, k.State) }

// Extent is a key and its size: what a tier is told to hold.
type Extent struct {
	Key   Key
	Bytes int64
}

// Tier is where one rank's slices rest outside its device memory. Its calls for one key come in order; calls for different keys
// may come from several lanes at once. Put and Get run where they are made: the engine makes them inside tasks of its copy or io lane,
// and they return when the bytes have moved.
type Tier interface {
	// Name is "host" or "file".
	Name() string
	// Reserve makes room for all extents, zeroed, before the first Put or Get, or fails having taken nothing. It is called once.
	Reserve(ctx context.Context, extents []Extent) error
	// Put copies src to the key's bytes from off on. If it fails, those bytes are src's or lost: a Get of lost ones is an error.
	Put(ctx context.Context, s device.Stream, k Key, off int64, src device.Buffer) error
	// Get copies the key's bytes from off on to dst. If it fails, dst holds anything.
	Get(ctx context.Context, s device.Stream, k Key, off int64, dst device.Buffer) error
	// Used is bytes held: the sum of the extents, as asked for.
	Used() int64
	// Close waits for calls that run, then gives everything back: memory is freed, files are removed. Later calls fail with
	// ErrClosed; a second Close does nothing.
	Close() error
}
