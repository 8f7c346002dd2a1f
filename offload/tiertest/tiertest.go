package tiertest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"

	"zeroshard/device"
	"zeroshard/offload"
)

// Run checks that what open returns keeps the contract of offload.Tier. open returns a new tier each time, before Reserve; Run closes it.
func Run(t *testing.T, open func(t testing.TB) offload.Tier) {
	for _, c := range []struct {
		name string
		f    func(*tier)
	}{
		{"starts zeroed", startsZeroed},
		{"put and get at any offset", anyOffset},
		{"neighbours stay", neighbours},
		{"many keys", manyKeys},
		{"keys at once", keysAtOnce},
		{"empty slices and calls", empty},
		{"put copies", putCopies},
		{"refuses unknown keys", unknownKeys},
		{"refuses bytes outside", outside},
		{"refuses device memory", deviceMemory},
		{"refuses bad extents", badExtents},
		{"reserves once", reserveOnce},
		{"needs a reserve", needsReserve},
		{"cancelled context", cancelled},
		{"used", used},
		{"close", closes},
		{"close waits", closeWaits},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := &tier{TB: t, Tier: open(t)}
			t.Cleanup(func() {
				if err := x.Tier.Close(); err != nil {
					t.Errorf("Close: %v", err)
				}
			})
			c.f(x)
		})
	}
}

func startsZeroed(x *tier) {
	x.reserve(sizes(1<<20+512, 512, 3*4096)...)
	for i, n := range []int{1<<20 + 512, 512, 3 * 4096} {
		x.want(key(i), 0, make([]byte, n))
	}
}

// anyOffset makes calls of all sizes and offsets and compares with a Go slice after each.
func anyOffset(x *tier) {
	const size = 2<<20 + 512*5
	x.reserve(sizes(size)...)
	model := make([]byte, size)
	for i, c := range []struct{ off, n int }{
		{0, 512}, {512, 512}, {4096, 4096}, {1001, 2}, {1<<20 - 4, 8}, {1 << 20, 1 << 20}, {0, size}, {size - 4, 4}, {size - 512*5, 512 * 5},
		{7, 1<<20 + 14}, {1<<20 + 4096, 4096 * 3}, {size - 3, 2}, {1<<21 - 512, 1024}, {0, 2},
	} {
		fill(model[c.off:c.off+c.n], uint64(i+1))
		x.put(key(0), int64(c.off), model[c.off:c.off+c.n])
		x.want(key(0), 0, model)
		x.want(key(0), int64(c.off/4*2), model[c.off/4*2:c.off/2*2])
	}
}

func neighbours(x *tier) {
	x.reserve(sizes(514, 4096, 4094, 2)...)
	for i, n := range []int{514, 4096, 4094, 2} {
		x.put(key(i), 0, filled(n, uint64(i)))
	}
	x.put(key(1), 0, filled(4096, 77))
	for i, n := range []int{514, 4096, 4094, 2} {
		seed := uint64(i)
		if i == 1 {
			seed = 77
		}
		x.want(key(i), 0, filled(n, seed))
	}
}

// manyKeys has names that are awkward for files, and equal names in other places.
func manyKeys(x *tier) {
	var extents []offload.Extent
	for _, state := range []string{"parameter", "m", "M", "carry 1", "a/b", "..", "", "ü\x00", strings.Repeat("long", 20)} {
		for _, flat := range []string{"h.0", "h.1", "m", "", "root/../x"} {
			extents = append(extents, offload.Extent{Key: offload.Key{Flat: flat, State: state}, Bytes: int64(512 + 4*len(extents))})
		}
	}
	x.reserve(extents...)
	for i, e := range extents {
		x.put(e.Key, 0, filled(int(e.Bytes), uint64(i)))
	}
	for i, e := range extents {
		x.want(e.Key, 0, filled(int(e.Bytes), uint64(i)))
	}
}

func keysAtOnce(x *tier) {
	const keys, size = 6, 1<<18 + 4096
	all := make([]int64, keys)
	for i := range all {
		all[i] = size
	}
	x.reserve(sizes(all...)...)
	var calls sync.WaitGroup
	for i := range keys {
		calls.Go(func() {
			for round := range uint64(3) {
				x.put(key(i), 512, filled(size-512, uint64(i)<<8|round))
				x.want(key(i), 512, filled(size-512, uint64(i)<<8|round))
				x.want(key(i), 0, make([]byte, 512))
			}
		})
	}
	calls.Wait()
}

func empty(x *tier) {
	x.reserve(sizes(0, 8)...)
	ctx := context.Background()
	for _, off := range []int64{0, 8} {
		err := errors.Join(x.Put(ctx, nil, key(1), off, device.Buffer{}), x.Get(ctx, nil, key(1), off, device.Buffer{}))
		if err != nil {
			x.Errorf("nothing at %d: %v", off, err)
		}
	}
	if err := errors.Join(x.Put(ctx, nil, key(0), 0, device.Buffer{}), x.Get(ctx, nil, key(0), 0, device.Buffer{})); err != nil {
		x.Errorf("nothing of an empty slice: %v", err)
	}
	x.wantKeyError(x.Put(ctx, nil, key(0), 1, device.Buffer{}), offload.KeyError{Key: key(0), Off: 1})
}

func putCopies(x *tier) {
	x.reserve(sizes(4096)...)
	src := filled(4096, 1)
	x.put(key(0), 0, src)
	fill(src, 2)
	x.want(key(0), 0, filled(4096, 1))
}

func unknownKeys(x *tier) {
	x.reserve(sizes(8)...)
	for _, k := range []offload.Key{{Flat: "h.0"}, {State: "m"}, {Flat: "m", State: "h.0"}, {Flat: "h.0", State: "v"}} {
		want := offload.KeyError{Key: k, Off: 4, Bytes: 4, Size: -1}
		x.wantKeyError(x.Put(context.Background(), nil, k, 4, buffer(make([]byte, 4))), want)
		x.wantKeyError(x.Get(context.Background(), nil, k, 4, buffer(make([]byte, 4))), want)
	}
}

func outside(x *tier) {
	x.reserve(sizes(8192, 4096)...)
	x.put(key(0), 0, filled(8192, 1))
	x.put(key(1), 0, filled(4096, 2))
	for _, c := range []struct {
		off int64
		n   int
	}{{8192, 4}, {8188, 8}, {0, 8196}, {-4, 8}, {-8192, 4}, {math.MaxInt64, 4}, {math.MinInt64, 4}} {
		want := offload.KeyError{Key: key(0), Off: c.off, Bytes: int64(c.n), Size: 8192}
		x.wantKeyError(x.Put(context.Background(), nil, key(0), c.off, buffer(make([]byte, c.n))), want)
		dst := filled(c.n, 9)
		x.wantKeyError(x.Get(context.Background(), nil, key(0), c.off, buffer(dst)), want)
		x.same("the destination of a refused get", dst, filled(c.n, 9))
	}
	x.want(key(0), 0, filled(8192, 1))
	x.want(key(1), 0, filled(4096, 2))
}

// opaque is memory that the CPU cannot address.
type opaque int64

func (o opaque) Size() int64 { return int64(o) }

func deviceMemory(x *tier) {
	x.reserve(sizes(4096)...)
	b := device.Buffer{Mem: opaque(4096), Len: 1024, DType: device.F32}
	for verb, err := range map[string]error{
		"put": x.Put(context.Background(), nil, key(0), 0, b),
		"get": x.Get(context.Background(), nil, key(0), 0, b),
	} {
		x.wantError(err, offload.ErrArgument, "cannot address", "h.0")
		x.Logf("%s: %v", verb, err)
	}
}

func badExtents(x *tier) {
	for name, extents := range map[string][]offload.Extent{
		"negative": {{Key: key(0), Bytes: 8}, {Key: key(1), Bytes: -1}},
		"twice":    {{Key: key(1), Bytes: 8}, {Key: key(1), Bytes: 8}},
		"overflow": {{Key: key(0), Bytes: math.MaxInt64}, {Key: key(1), Bytes: math.MaxInt64}},
	} {
		x.Logf("%s", name)
		x.wantError(x.Reserve(context.Background(), extents), offload.ErrArgument, "h.1")
		if x.Used() != 0 {
			x.Errorf("%d bytes are held", x.Used())
		}
	}
	x.reserve(sizes(8)...) // a refused reserve has taken nothing
	x.want(key(0), 0, make([]byte, 8))
}

func reserveOnce(x *tier) {
	x.reserve(sizes(8)...)
	x.put(key(0), 0, filled(8, 1))
	x.wantError(x.Reserve(context.Background(), sizes(16)), offload.ErrArgument, "second")
	x.want(key(0), 0, filled(8, 1))
}

func needsReserve(x *tier) {
	for _, err := range []error{
		x.Put(context.Background(), nil, key(0), 0, buffer(make([]byte, 4))),
		x.Get(context.Background(), nil, key(0), 0, buffer(make([]byte, 4))),
	} {
		x.wantError(err, offload.ErrArgument, "h.0")
	}
	x.reserve() // of nothing
	x.wantKeyError(x.Put(context.Background(), nil, key(0), 0, buffer(make([]byte, 4))), offload.KeyError{Key: key(0), Bytes: 4, Size: -1})
}

func cancelled(x *tier) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	x.wantError(x.Reserve(ctx, sizes(4096)), context.Canceled)
	x.reserve(sizes(4096)...)
	x.put(key(0), 0, filled(4096, 1))
	x.wantError(x.Put(ctx, nil, key(0), 0, buffer(make([]byte, 4096))), context.Canceled, "h.0")
	x.wantError(x.Get(ctx, nil, key(0), 0, buffer(make([]byte, 4096))), context.Canceled, "h.0")
	x.put(key(0), 0, filled(4096, 3))
	x.want(key(0), 0, filled(4096, 3))
}

func used(x *tier) {
	if x.Name() == "" || x.Used() != 0 {
		x.Errorf("%q holds %d bytes before Reserve", x.Name(), x.Used())
	}
	x.reserve(sizes(512, 7, 4096)...)
	if want := int64(512 + 7 + 4096); x.Used() != want {
		x.Errorf("holds %d bytes, want %d", x.Used(), want)
	}
}

func closes(x *tier) {
	x.reserve(sizes(4096)...)
	x.put(key(0), 0, filled(4096, 1))
	if err := errors.Join(x.Close(), x.Close()); err != nil {
		x.Errorf("Close twice: %v", err)
	}
	x.wantError(x.Put(context.Background(), nil, key(0), 0, buffer(make([]byte, 4))), offload.ErrClosed, "h.0")
	x.wantError(x.Get(context.Background(), nil, key(0), 0, buffer(make([]byte, 4))), offload.ErrClosed, "h.0")
	x.wantError(x.Reserve(context.Background(), sizes(8)), offload.ErrClosed)
	if x.Used() != 0 {
		x.Errorf("holds %d bytes after Close", x.Used())
	}
}

// closeWaits closes in the middle of calls: each is made in full or refused.
func closeWaits(x *tier) {
	const size = 1 << 20
	x.reserve(sizes(size, size)...)
	var calls sync.WaitGroup
	begun := make(chan struct{}, 2)
	for i := range 2 {
		calls.Go(func() {
			src, dst := filled(size, uint64(i)), make([]byte, size)
			for round := 0; ; round++ {
				err := x.Put(context.Background(), nil, key(i), 0, buffer(src))
				if err == nil {
					err = x.Get(context.Background(), nil, key(i), 0, buffer(dst))
				}
				if errors.Is(err, offload.ErrClosed) {
					return
				}
				if err != nil || string(dst) != string(src) {
					x.Errorf("round %d: wrong bytes, or %v", round, err)
					return
				}
				if round == 0 {
					begun <- struct{}{}
				}
			}
		})
	}
	<-begun
	<-begun
	if err := x.Close(); err != nil {
		x.Error(err)
	}
	calls.Wait()
}

func sizes(bytes ...int64) (extents []offload.Extent) {
	for i, n := range bytes {
		extents = append(extents, offload.Extent{Key: key(i), Bytes: n})
	}
	return extents
}

func key(i int) offload.Key { return offload.Key{Flat: fmt.Sprintf("h.%d", i), State: "m"} }
