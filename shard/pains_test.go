package shard_test

import (
	"slices"
	"testing"

	"zeroshard/shard"
)

// Reports against other engines about sizes that do not divide. Each test is the case reported, or the family around it.

var primes = []int{2, 3, 5, 7, 11, 13, 97, 127, 131, 257}

// Quantised weights needed multiples of 8, so three nodes of eight ranks failed.
func TestPain18AnySizeAnyWorld(t *testing.T) {
	for world := 1; world <= 40; world++ {
		for _, n := range []int{1, 7, 9, 127, 128, 129, 1000, 4096, 12345} {
			checkShards(t, layout(t, vec("w", n)), mesh(t, 1, world))
		}
	}
	checkShards(t, layout(t, vec("w", 1<<20+1)), mesh(t, 3, 8))
}

// 32 elements on 2048 ranks, in replicas of 16 and whole.
func TestPain19MoreRanksThanElements(t *testing.T) {
	l := layout(t, vec("w", 32))
	checkShards(t, l, mesh(t, 128, 16))
	m := mesh(t, 1, 2048)
	checkShards(t, l, m)
	if r := l.Shard(0, 0, m); r != (shard.Range{Lo: 0, Hi: 128}) {
		t.Errorf("the first rank owns %v, want the one grain", r)
	}
	for index := 1; index < 2048; index++ {
		if r := l.Shard(0, index, m); r.Len() != 0 {
			t.Fatalf("rank %d owns %v, want nothing", index, r)
		}
	}
}

// A trailing trainable parameter without elements.
func TestPain20ZeroSize(t *testing.T) {
	for _, params := range [][]shard.Param{
		{vec("w", 300), vec("none", 0)},
		{vec("none", 0), vec("w", 300)},
		{vec("a", 1), {Name: "none", Shape: []int{3, 0}}, vec("b", 1)},
		{vec("none", 0)},
		{vec("none", 0), vec("nothing", 0)},
	} {
		for world := 1; world <= 5; world++ {
			l := layout(t, params...)
			checkShards(t, l, mesh(t, 1, world))
			checkShards(t, l, mesh(t, 2, world))
			if flat, seg, ok := l.Lookup("none"); !ok || l.Flats[flat].Segs[seg].Range.Len() != 0 {
				t.Errorf("the parameter without elements is at %d, %d, %v", flat, seg, ok)
			}
		}
	}
	l := layout(t, vec("none", 0))
	if m := mesh(t, 2, 4); l.ShardLen(0, m) != 0 || l.FullLen(0, m) != 0 || l.Shard(0, 3, m) != (shard.Range{}) {
		t.Error("a flat without elements has a shard")
	}
}

// Code assumed that padding is on the last rank only.
func TestPain21PaddingSpansRanks(t *testing.T) {
	l, m := layout(t, vec("w", 266240)), mesh(t, 1, 768)
	checkShards(t, l, m)
	empty := 0
	for index := range 768 {
		if l.Shard(0, index, m).Len() == 0 {
			empty++
		}
	}
	// 2080 grains, 3 a rank: 693 ranks are full, one has a single grain, the others have only padding.
	if size := l.ShardLen(0, m); size != 3*shard.Grain || empty != 768-694 {
		t.Errorf("shards of %d elements, %d of them empty", size, empty)
	}
	if r := l.Shard(0, 693, m); r.Len() != shard.Grain {
		t.Errorf("rank 693 owns %v, want one grain", r)
	}
}

func TestPain22PrimeSizesAndWorlds(t *testing.T) {
	for _, world := range primes {
		for _, n := range primes {
			checkShards(t, layout(t, vec("a", n), vec("b", n*n), vec("c", 131*n)), mesh(t, 1, world))
			checkShards(t, layout(t, vec("a", n*n)), mesh(t, 5, world))
		}
	}
}

func TestPain25OddVocabulary(t *testing.T) {
	l := layout(t, shard.Param{Name: "wte", Shape: []int{32001, 64}}, vec("wpe", 64))
	checkShards(t, l, mesh(t, 1, 8))
	if n := l.Numel(); n != 32001*64+64 {
		t.Errorf("Numel = %d: the table was padded", n)
	}
}

// Random layouts on random meshes: every element owned once, pieces cover, classes keep all parameters.
func FuzzShards(f *testing.F) {
	f.Add([]byte{1, 200, 0, 7}, uint16(3), uint8(1), uint8(0))
	f.Add([]byte{0, 0}, uint16(2048), uint8(2), uint8(3))
	f.Add([]byte{255, 255, 255, 31}, uint16(768), uint8(16), uint8(100))
	f.Fuzz(func(t *testing.T, sizes []byte, shards uint16, replicas, threshold uint8) {
		if shards == 0 || replicas == 0 || len(sizes) > 50 {
			return
		}
		spec, want := shard.FlatSpec{Name: "f"}, 0
		for i, s := range sizes {
			n := int(s) * (1 + i%3)
			spec.Params = append(spec.Params, shard.Param{Name: string(rune('a' + i)), Shape: []int{n}, Frozen: s%5 == 1})
			want += n
		}
		l, err := shard.NewLayout([]shard.FlatSpec{spec}, int(threshold))
		if err != nil {
			t.Fatal(err)
		}
		if l.Numel() != want {
			t.Errorf("Numel = %d, want %d", l.Numel(), want)
		}
		for _, p := range spec.Params {
			flat, seg, ok := l.Lookup(p.Name)
			if !ok || l.Flats[flat].Segs[seg].Range.Len() != p.Len() || l.Flats[flat].Segs[seg].Range.Lo%shard.Grain != 0 {
				t.Errorf("parameter %q is at %d, %d, %v", p.Name, flat, seg, ok)
			}
		}
		checkShards(t, l, mesh(t, int(replicas), int(shards)))
	})
}

func TestPieces(t *testing.T) {
	l := layout(t, vec("a", 200), vec("none", 0), vec("b", 50))
	for _, tc := range []struct {
		name string
		in   shard.Range
		want []shard.Segment
	}{
		{"all", shard.Range{Lo: 0, Hi: 384}, []shard.Segment{
			{Param: vec("a", 200), Range: shard.Range{Lo: 0, Hi: 200}}, {Param: vec("b", 50), Range: shard.Range{Lo: 256, Hi: 306}}}},
		{"across the gap", shard.Range{Lo: 128, Hi: 300}, []shard.Segment{
			{Param: vec("a", 200), Range: shard.Range{Lo: 128, Hi: 200}, From: 128}, {Param: vec("b", 50), Range: shard.Range{Lo: 256, Hi: 300}}}},
		{"inside one", shard.Range{Lo: 5, Hi: 6}, []shard.Segment{{Param: vec("a", 200), Range: shard.Range{Lo: 5, Hi: 6}, From: 5}}},
		{"only padding", shard.Range{Lo: 200, Hi: 256}, nil},
		{"nothing", shard.Range{Lo: 7, Hi: 7}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := slices.Collect(l.Flats[0].Pieces(tc.in))
			if !slices.EqualFunc(got, tc.want, func(a, b shard.Segment) bool {
				return a.Param.Name == b.Param.Name && a.Range == b.Range && a.From == b.From
			}) {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
	for range l.Flats[0].Pieces(shard.Range{Lo: 0, Hi: 384}) {
		break // a loop may end early
	}
}
