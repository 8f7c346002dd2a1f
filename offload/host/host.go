package host

import (
	"context"
	"fmt"
	"sync"

	"zeroshard/device"
	"zeroshard/internal/pages"
	"zeroshard/offload"
)

const name = "host"

// alignment of slices: the size of a grain of fp32.
const alignment = 512

// Options of New. The zero value is ready to use.
type Options struct {
	Rank int // for errors
}

// Tier keeps one rank's slices in host memory. It implements offload.Tier.
type Tier struct {
	rank int

	mu     sync.RWMutex // held for reading by calls that move bytes
	closed bool
	table  *offload.Table // nil before Reserve
	at     []int64        // by extent: where its slice begins
	block  memory
}

// memory is the mapping.
type memory struct{ bytes []byte }

func (m *memory) Size() int64   { return int64(len(m.bytes)) }
func (m *memory) Bytes() []byte { return m.bytes }

// New returns a tier that holds nothing.
func New(o Options) *Tier { return &Tier{rank: o.Rank} }

// Name is "host".
func (t *Tier) Name() string { return name }

// Reserve maps memory for all extents at once. An error wraps offload.ErrSpace, ErrArgument or ErrClosed, or is the context's.
func (t *Tier) Reserve(ctx context.Context, extents []offload.Extent) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed:
		return fmt.Errorf("offload: host tier: rank %d: reserve: %w", t.rank, offload.ErrClosed)
	case t.table != nil:
		return fmt.Errorf("offload: host tier: rank %d: second reserve: %w", t.rank, offload.ErrArgument)
	case ctx.Err() != nil:
		return fmt.Errorf("offload: host tier: rank %d: reserve: %w", t.rank, ctx.Err())
	}
	table, err := offload.NewTable(name, t.rank, extents)
	if err != nil {
		return err
	}
	at, total := make([]int64, len(extents)), int64(0)
	for i, e := range extents {
		at[i] = total
		total += (e.Bytes + alignment - 1) &^ (alignment - 1)
	}
	bytes, err := pages.Map(total)
	if err != nil {
		return &offload.SpaceError{Tier: name, Rank: t.rank, Bytes: table.Bytes(), Free: -1, Err: err}
	}
	t.table, t.at, t.block.bytes = table, at, bytes
	return nil
}

// Put copies src in. See offload.Tier for its contract; errors are *offload.KeyError, or wrap ErrArgument, ErrClosed or the context's.
func (t *Tier) Put(ctx context.Context, _ device.Stream, k offload.Key, off int64, src device.Buffer) error {
	return t.move(ctx, k, off, src, true)
}

// Get copies to dst; as Put.
func (t *Tier) Get(ctx context.Context, _ device.Stream, k offload.Key, off int64, dst device.Buffer) error {
	return t.move(ctx, k, off, dst, false)
}

func (t *Tier) move(ctx context.Context, k offload.Key, off int64, b device.Buffer, put bool) error {
	t.mu.RLock()
	defer t.mu.RUnlock()
	i, err := t.find(k, off, b.Bytes())
	if err != nil {
		return err
	}
	raw, err := t.table.Raw(k, b)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return &offload.CallError{Tier: name, Rank: t.rank, Verb: verb(put), Key: k, Off: off, Bytes: b.Bytes(), Err: err}
	}
	slice := t.block.bytes[t.at[i]+off:]
	if put {
		copy(slice, raw)
	} else {
		copy(raw, slice)
	}
	return nil
}

func verb(put bool) string {
	if put {
		return "put"
	}
	return "get"
}

func (t *Tier) find(k offload.Key, off, n int64) (int, error) {
	if t.closed {
		return 0, fmt.Errorf("offload: host tier: rank %d: %v: %w", t.rank, k, offload.ErrClosed)
	}
	if t.table == nil {
		return 0, fmt.Errorf("offload: host tier: rank %d: %v: nothing is reserved yet: %w", t.rank, k, offload.ErrArgument)
	}
	return t.table.Find(k, off, n)
}

// View returns k's bytes from off on as n elements in place, for kernels of the host: no copy. It is good until Close, and what reads and
// writes it keeps the order that calls for one key keep. off is a multiple of the element's size. Errors are those of Put.
func (t *Tier) View(k offload.Key, off int64, n int, d device.DType) (device.Buffer, error) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	i, err := t.find(k, off, int64(n)*int64(d.Size()))
	if err != nil {
		return device.Buffer{}, err
	}
	if off%int64(d.Size()) != 0 {
		return device.Buffer{}, fmt.Errorf("offload: host tier: rank %d: %v: offset %d is inside a %v element: %w", t.rank, k, off, d, offload.ErrArgument)
	}
	return device.Buffer{Mem: &t.block, Off: t.at[i] + off, Len: n, DType: d}, nil
}

// Used is the sum of the extents.
func (t *Tier) Used() int64 {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if t.table == nil {
		return 0
	}
	return t.table.Bytes()
}

// Close unmaps the memory. Views are invalid from here on.
func (t *Tier) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	mapped := t.block.bytes
	t.closed, t.table, t.at, t.block.bytes = true, nil, nil, nil
	if err := pages.Unmap(mapped); err != nil {
		return fmt.Errorf("offload: host tier: rank %d: unmap of %d bytes: %w", t.rank, len(mapped), err)
	}
	return nil
}
