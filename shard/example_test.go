package shard_test

import (
	"fmt"

	"zeroshard/shard"
)

// A flat of two parameters over three ranks: what each rank owns, and which parameters lie there.
func ExampleLayout() {
	l, err := shard.NewLayout([]shard.FlatSpec{{Name: "h.0", Params: []shard.Param{
		{Name: "weight", Shape: []int{30, 10}},
		{Name: "bias", Shape: []int{30}, NoDecay: true},
	}}}, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	m, _ := shard.NewMesh(1, 3)
	f := &l.Flats[0]
	fmt.Printf("%s: %d elements in a flat of %d, buffers of %d\n", f.Name, l.Numel(), f.Len, l.FullLen(0, m))
	for rank := range m.World() {
		r := l.Shard(0, m.Coord(rank, shard.Shards), m)
		fmt.Printf("rank %d owns [%d, %d)", rank, r.Lo, r.Hi)
		for s := range f.Pieces(r) {
			fmt.Printf("  %s from %d: %d", s.Param.Name, s.From, s.Range.Len())
		}
		fmt.Println()
	}
	// Output:
	// h.0: 330 elements in a flat of 512, buffers of 768
	// rank 0 owns [0, 256)  weight from 0: 256
	// rank 1 owns [256, 512)  weight from 256: 44  bias from 0: 30
	// rank 2 owns [512, 512)
}

// Eight leaves on three ranks: gradients are added in the order of one tree, so the batch is cut into windows.
func ExampleWindows() {
	w, _ := shard.NewWindows(8, 3, 0)
	for window := range w.Count {
		for rank := range w.Ranks {
			if r := w.Range(window, rank); r.Len() > 0 {
				fmt.Printf("window %d rank %d: leaf %d\n", window, rank, r.Lo)
			}
		}
	}
	// Output:
	// window 0 rank 0: leaf 0
	// window 0 rank 1: leaf 1
	// window 0 rank 2: leaf 2
	// window 1 rank 0: leaf 3
	// window 1 rank 1: leaf 4
	// window 1 rank 2: leaf 5
	// window 2 rank 0: leaf 6
	// window 2 rank 1: leaf 7
}
