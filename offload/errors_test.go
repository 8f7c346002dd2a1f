package offload_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"zeroshard/device"
	"zeroshard/offload"
	"zeroshard/offload/host"
)

func TestErrors(t *testing.T) {
	k := offload.Key{Flat: "h.3", State: "m"}
	for _, c := range []struct {
		err  error
		text string
		is   []error
	}{
		{
			&offload.KeyError{Tier: "file", Rank: 1, Key: k, Off: 512, Bytes: 8, Size: 516},
			"offload: file tier: rank 1: flat h.3, state m: 8 bytes at offset 512 are not inside its 516 bytes",
			[]error{offload.ErrArgument},
		},
		{
			&offload.KeyError{Tier: "host", Rank: 0, Key: k, Off: 0, Bytes: 8, Size: -1},
			"offload: host tier: rank 0: flat h.3, state m: 8 bytes at offset 0: no room was reserved for this flat and state",
			[]error{offload.ErrArgument},
		},
		{
			&offload.CallError{Tier: "file", Rank: 1, Verb: "get", Key: k, Path: "d/00-m.tier", Off: 4096, Bytes: 100, Err: io.ErrUnexpectedEOF},
			"offload: file tier: rank 1: get of flat h.3, state m: 100 bytes at offset 4096 of d/00-m.tier: unexpected EOF",
			[]error{io.ErrUnexpectedEOF},
		},
		{
			&offload.CallError{Tier: "host", Rank: 1, Verb: "put", Key: k, Bytes: 100, Err: context.Canceled},
			"offload: host tier: rank 1: put of flat h.3, state m: 100 bytes at offset 0: context canceled",
			[]error{context.Canceled},
		},
		{
			&offload.SpaceError{Tier: "file", Rank: 1, Path: "d/00-m.tier", Bytes: 4096, Free: 100, Err: io.ErrShortWrite},
			"offload: no room for 4096 bytes in d/00-m.tier, 100 are free: file tier of rank 1: short write: make room, use more ranks, or offload less",
			[]error{offload.ErrSpace, io.ErrShortWrite},
		},
		{
			&offload.SpaceError{Tier: "file", Rank: 1, Path: "d/00-m.tier", Bytes: 4096, Free: 100, Total: 12288, Taken: 8192, Err: io.ErrShortWrite},
			"offload: no room for 4096 bytes in d/00-m.tier, 100 are free, of 12288 that are needed in all 8192 are taken: file tier of rank 1: short write: " +
				"make room, use more ranks, or offload less",
			[]error{offload.ErrSpace, io.ErrShortWrite},
		},
		{
			&offload.SpaceError{Tier: "host", Rank: 1, Bytes: 4096, Free: -1, Err: io.ErrShortWrite},
			"offload: no room for 4096 bytes in memory: host tier of rank 1: short write: make room, use more ranks, or offload less",
			[]error{offload.ErrSpace, io.ErrShortWrite},
		},
	} {
		if c.err.Error() != c.text {
			t.Errorf("%q,\nwant %q", c.err, c.text)
		}
		for _, is := range c.is {
			if !errors.Is(c.err, is) {
				t.Errorf("%q does not wrap %q", c.err, is)
			}
		}
	}
}

func ExampleTier() {
	ctx := context.Background()
	var tier offload.Tier = host.New(host.Options{})
	defer tier.Close()

	m := offload.Key{Flat: "h.0", State: "m"}
	if err := tier.Reserve(ctx, []offload.Extent{{Key: m, Bytes: 4 * 4}}); err != nil {
		fmt.Println(err)
		return
	}
	moments, back := []float32{1, 2}, make([]float32, 4)
	err := errors.Join(
		tier.Put(ctx, nil, m, 2*4, device.Host(moments)), // evict elements 2 and 3
		tier.Get(ctx, nil, m, 0, device.Host(back)))      // fetch all
	fmt.Println(back, err, tier.Used())
	fmt.Println(tier.Get(ctx, nil, m, 8, device.Host(back)))
	// Output:
	// [0 0 1 2] <nil> 16
	// offload: host tier: rank 0: flat h.0, state m: 16 bytes at offset 8 are not inside its 16 bytes
}
