package tiertest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"

	"zeroshard/device"
	"zeroshard/offload"
)

// tier is a tier under test.
type tier struct {
	testing.TB
	offload.Tier
}

func (x *tier) Name() string { return x.Tier.Name() } // both have one

func (x *tier) reserve(extents ...offload.Extent) {
	x.Helper()
	if err := x.Reserve(context.Background(), extents); err != nil {
		x.Fatal(err)
	}
}

func (x *tier) put(k offload.Key, off int64, src []byte) {
	x.Helper()
	before := slices.Clone(src)
	if err := x.Put(context.Background(), nil, k, off, buffer(src)); err != nil {
		x.Errorf("put of %d bytes at %d: %v", len(src), off, err)
	}
	x.same("the source of a put", src, before)
}

// want gets bytes between guards and compares.
func (x *tier) want(k offload.Key, off int64, want []byte) {
	x.Helper()
	guard := filled(64, 99)
	dst := slices.Concat(guard, bytes.Repeat([]byte{0xa5}, len(want)), guard)
	if err := x.Get(context.Background(), nil, k, off, buffer(dst[64:64+len(want)])); err != nil {
		x.Errorf("get of %d bytes at %d: %v", len(want), off, err)
		return
	}
	x.same("what get returned", dst[64:64+len(want)], want)
	x.same("the bytes before", dst[:64], guard)
	x.same("the bytes behind", dst[64+len(want):], guard)
}

func (x *tier) same(what string, got, want []byte) {
	x.Helper()
	if bytes.Equal(got, want) {
		return
	}
	for i := range want {
		if got[i] != want[i] {
			x.Errorf("%s: byte %d of %d is %d, want %d", what, i, len(want), got[i], want[i])
			return
		}
	}
}

// wantError demands an error that wraps is, begins as all of the package do and says each of texts.
func (x *tier) wantError(err, is error, texts ...string) {
	x.Helper()
	if !errors.Is(err, is) {
		x.Errorf("%v, want %v", err, is)
		return
	}
	for _, text := range append(texts, "rank", x.Name()) {
		if !strings.Contains(err.Error(), text) {
			x.Errorf("%q does not say %q", err, text)
		}
	}
	if !strings.HasPrefix(err.Error(), "offload: ") {
		x.Errorf("%q has another prefix", err)
	}
}

func (x *tier) wantKeyError(err error, want offload.KeyError) {
	x.Helper()
	x.wantError(err, offload.ErrArgument, want.Key.Flat, want.Key.State)
	var got *offload.KeyError
	if !errors.As(err, &got) {
		x.Errorf("%v is no KeyError", err)
		return
	}
	want.Tier, want.Rank = x.Name(), got.Rank
	if *got != want {
		x.Errorf("%+v, want %+v", *got, want)
	}
}

// buffer is raw as a device's buffer: 2-byte elements, the shortest there are.
func buffer(raw []byte) device.Buffer {
	return device.Buffer{Mem: memory(raw), Len: len(raw) / 2, DType: device.BF16}
}

type memory []byte

func (m memory) Size() int64   { return int64(len(m)) }
func (m memory) Bytes() []byte { return m }

func filled(n int, seed uint64) []byte {
	b := make([]byte, n)
	fill(b, seed)
	return b
}

// fill writes bytes that depend on seed and place: every 512 differ from all others. It copies most, so that it is quick under the race
// detector too.
func fill(b []byte, seed uint64) {
	const grain = 512
	var noise [grain]byte
	x := seed*0x9e3779b97f4a7c15 + 1
	for i := 0; i < grain; i += 8 {
		x ^= x << 13 // xorshift64
		x ^= x >> 7
		x ^= x << 17
		binary.LittleEndian.PutUint64(noise[i:], x)
	}
	for i := 0; i < len(b); i += grain {
		binary.LittleEndian.PutUint64(noise[i/grain%64*8:], x+uint64(i))
		copy(b[i:], noise[:])
	}
}
