package offload

import (
	"fmt"

	"zeroshard/device"
)

// Table finds reserved slices by key and judges calls: the part of a tier that is the same in all. It does not change once made.
type Table struct {
	tier    string
	rank    int
	extents []Extent
	byKey   map[Key]int
	bytes   int64
}

// NewTable returns a table of extents for a tier of that name. An error wraps ErrArgument: a negative size, a key named twice, more bytes
// than an int64 counts.
func NewTable(tier string, rank int, extents []Extent) (*Table, error) {
	t := &Table{tier: tier, rank: rank, extents: extents, byKey: make(map[Key]int, len(extents))}
	for i, e := range extents {
		_, twice := t.byKey[e.Key]
		t.byKey[e.Key] = i
		t.bytes += max(e.Bytes, 0)
		var fault string
		switch {
		case e.Bytes < 0:
			fault = fmt.Sprintf("%d bytes", e.Bytes)
		case twice:
			fault = "reserved twice"
		case t.bytes < 0:
			fault = "more bytes in all than can be counted"
		default:
			continue
		}
		return nil, fmt.Errorf("offload: %s tier: rank %d: reserve of %v: %s: %w", tier, rank, e.Key, fault, ErrArgument)
	}
	return t, nil
}

// Bytes is the sum of the sizes.
func (t *Table) Bytes() int64 { return t.bytes }

// Find returns the index of k's extent if k holds n bytes from off on, else a *KeyError.
func (t *Table) Find(k Key, off, n int64) (int, error) {
	i, ok := t.byKey[k]
	if !ok {
		return 0, &KeyError{Tier: t.tier, Rank: t.rank, Key: k, Off: off, Bytes: n, Size: -1}
	}
	if size := t.extents[i].Bytes; off < 0 || n < 0 || off > size || n > size-off {
		return 0, &KeyError{Tier: t.tier, Rank: t.rank, Key: k, Off: off, Bytes: n, Size: size}
	}
	return i, nil
}

// Raw returns b's bytes, none for an empty b. Where the CPU cannot address them the error wraps ErrArgument.
func (t *Table) Raw(k Key, b device.Buffer) ([]byte, error) {
	raw := b.Raw()
	if raw == nil && b.Len > 0 {
		return nil, fmt.Errorf("offload: %s tier: rank %d: %v: the CPU cannot address the device's memory; copy through a buffer of the host: %w", t.tier, t.rank, k, ErrArgument)
	}
	return raw, nil
}
