package grouptest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"

	"zeroshard/collectives"
	"zeroshard/device"
)

func ranksAndSizes(w *world) {
	for r, g := range w.groups {
		if g.Rank() != r || g.Size() != w.size() {
			w.t.Errorf("end %d is rank %d of %d", r, g.Rank(), g.Size())
		}
		for _, v := range []collectives.Verb{collectives.AllGather, collectives.ReduceScatter} {
			if n := g.Workspace(v, 1<<20); n < 0 || n != g.Workspace(v, 1<<20) {
				w.t.Errorf("%v wants %d bytes of workspace, then %d", v, n, g.Workspace(v, 1<<20))
			}
		}
	}
}

func gatherLengths(w *world) {
	for _, n := range []int{0, 1, 7, 1000} {
		w.all(func(g collectives.Group) error {
			return errors.Join(
				gatherOf(g, n, func(i int) float32 { return float32(i) }),
				gatherOf(g, n, func(i int) float64 { return -float64(i) }),
				gatherOf(g, n, func(i int) int32 { return int32(-i) }),
				gatherOf(g, n, func(i int) uint64 { return math.MaxUint64 - uint64(i) }))
		})
	}
}

// gatherServing lets one rank after the other only give its piece: the others' results are the same.
func gatherServing(w *world) {
	const n = 300
	for serving := range w.size() {
		w.all(func(g collectives.Group) error {
			if g.Rank() != serving {
				return gatherOf(g, n, func(i int) float32 { return float32(i + serving) })
			}
			src := make([]float32, n)
			for i := range src {
				src[i] = float32(g.Rank()*n + i + serving)
			}
			return g.AllGather(context.Background(), nil, device.Buffer{}, device.Host(src))
		})
	}
}

// gatherOf gathers value(i) for all i of a vector cut evenly over the ranks, n elements each.
func gatherOf[T float32 | float64 | int32 | uint64](g collectives.Group, n int, value func(i int) T) error {
	dst, src := make([]T, n*g.Size()), make([]T, n)
	for i := range src {
		src[i] = value(g.Rank()*n + i)
	}
	if err := g.AllGather(context.Background(), nil, device.Host(dst), device.Host(src)); err != nil {
		return err
	}
	for i, v := range dst {
		if v != value(i) {
			return fmt.Errorf("test: %T gather of %d: element %d is %v, want %v", v, n, i, v, value(i))
		}
	}
	return nil
}

func gatherInPlace(w *world) {
	const n = 129
	w.all(func(g collectives.Group) error {
		v := make([]float32, n*g.Size())
		mine := v[g.Rank()*n : (g.Rank()+1)*n]
		for i := range mine {
			mine[i] = float32(g.Rank()*n + i)
		}
		whole := device.Host(v)
		err := g.AllGather(context.Background(), nil, whole, whole.Slice(g.Rank()*n, (g.Rank()+1)*n))
		for i, x := range v {
			if x != float32(i) {
				err = errors.Join(err, fmt.Errorf("test: element %d is %v", i, x))
				break
			}
		}
		return err
	})
}

// gatherReuse overwrites the source as soon as a call returns: nobody may be reading it then.
func gatherReuse(w *world) {
	const n, rounds = 513, 100
	w.all(func(g collectives.Group) error {
		dst, src := make([]int32, n*g.Size()), make([]int32, n)
		for round := range int32(rounds) {
			for i := range src {
				src[i] = round*100 + int32(g.Rank())
			}
			if err := g.AllGather(context.Background(), nil, device.Host(dst), device.Host(src)); err != nil {
				return err
			}
			clear(src)
			for i, v := range dst {
				if v != round*100+int32(i/n) {
					return fmt.Errorf("test: round %d: element %d is %d", round, i, v)
				}
			}
		}
		return nil
	})
}

// step is one reduction of leaves over all windows.
type step struct {
	window  int
	leaves  [][]float32 // of W·n elements
	inPlace bool
}

// reduce returns rank's slice of the sum.
func (st step) reduce(g collectives.Group) ([]float32, error) {
	size, m := g.Size(), len(st.leaves)
	n := len(st.leaves[0]) / size
	var carry []device.Buffer
	for w := range collectives.Windows(size, m, st.window) {
		f, err := collectives.NewFold(size, m, st.window, w)
		if err != nil {
			return nil, err
		}
		r := collectives.Reduction{In: carry, Fold: f}
		if f.Present[g.Rank()] {
			lo := (w*size + g.Rank()) * st.window
			r.Src = device.Host(slices.Clone(tree(st.leaves[lo:min(lo+st.window, m)])))
		}
		for i := range f.Out {
			switch {
			case st.inPlace && f.Out == 1 && f.Present[g.Rank()]:
				r.Out = append(r.Out, r.Src.Slice(g.Rank()*n, (g.Rank()+1)*n))
			case i < len(carry):
				r.Out = append(r.Out, carry[i])
			default:
				r.Out = append(r.Out, zeros(n))
			}
		}
		if err := g.ReduceScatter(context.Background(), nil, r); err != nil {
			return nil, err
		}
		carry = r.Out
	}
	return carry[0].Float32s(), nil
}

// zeros is a buffer of n fp32; device.Host gives an empty one no dtype.
func zeros(n int) device.Buffer { return device.Host(make([]float32, n)) }

// tree is the sum of leaves by the definition: a tree over n leaves splits at the largest power of two below n.
func tree(leaves [][]float32) []float32 {
	if len(leaves) == 1 {
		return leaves[0]
	}
	split := 1 << (bits.Len(uint(len(leaves)-1)) - 1)
	a, b := tree(leaves[:split]), tree(leaves[split:])
	sum := make([]float32, len(a))
	for i := range sum {
		sum[i] = a[i] + b[i]
	}
	return sum
}

// leaves are m vectors of W·n floats of very different sizes.
func (w *world) leaves(m, n int) [][]float32 {
	rng := rand.New(rand.NewPCG(uint64(m), uint64(n)))
	leaves := make([][]float32, m)
	for i := range leaves {
		leaves[i] = make([]float32, w.size()*n)
		for j := range leaves[i] {
			leaves[i][j] = float32(rng.NormFloat64() * math.Pow(2, float64(rng.IntN(24))))
		}
	}
	return leaves
}

// check runs st on all ranks and compares with the tree, bit for bit.
func (w *world) check(st step) {
	w.t.Helper()
	want, n := tree(st.leaves), len(st.leaves[0])/w.size()
	w.all(func(g collectives.Group) error {
		got, err := st.reduce(g)
		if err != nil {
			return err
		}
		for i, v := range got {
			if e := want[g.Rank()*n+i]; math.Float32bits(v) != math.Float32bits(e) {
				return fmt.Errorf("test: M=%d g=%d: element %d is %x, want %x", len(st.leaves), st.window, i, v, e)
			}
		}
		if len(got) != n {
			return fmt.Errorf("test: %d elements, want %d", len(got), n)
		}
		return nil
	})
}

// reduceTree covers one window and several, short last windows, ranks without a part, and more ranks than leaves.
func reduceTree(w *world) {
	for _, m := range []int{1, 2, 3, 5, 8, 13, 16, 21} {
		for _, g := range []int{1, 2, 4, 16} {
			w.check(step{window: g, leaves: w.leaves(m, 6)})
		}
	}
}

func reduceInPlace(w *world) {
	for _, m := range []int{w.size(), 2 * w.size(), 16} {
		w.check(step{window: 1, leaves: w.leaves(m, 6), inPlace: true})
	}
}

func reduceEmpty(w *world) {
	w.check(step{window: 1, leaves: w.leaves(9, 0)})
}

func reduceLong(w *world) {
	w.check(step{window: 1, leaves: w.leaves(7, 2*collectives.Chunk+3)})
	w.check(step{window: 1, leaves: w.leaves(w.size(), collectives.Chunk+1), inPlace: true})
}

// mixed alternates the verbs, as stage 3 does, with buffers of different lengths.
func mixed(w *world) {
	leaves := w.leaves(2*w.size(), 11)
	for i := range 10 {
		w.all(func(g collectives.Group) error { return gather(context.Background(), g, 3*i+1) })
		w.check(step{window: 1, leaves: leaves})
	}
}

func counting(w *world) {
	n, peers := 10, int64(w.size()-1)
	counters := make([]*collectives.Counter, w.size())
	for r, g := range w.groups {
		counters[r] = collectives.Counting(g)
	}
	leaves := w.leaves(w.size()+1, n) // in the second window only rank 0 has a part
	w.all(func(g collectives.Group) error {
		c := counters[g.Rank()]
		if err := gather(context.Background(), c, n); err != nil {
			return err
		}
		_, err := step{window: 1, leaves: leaves}.reduce(c)
		return err
	})
	for r, c := range counters {
		parts := int64(1)
		if r == 0 {
			parts = 2
		}
		want := [2]int64{peers * int64(n) * 4, parts * peers * int64(n) * 4}
		if got := c.Sent(); got != want {
			w.t.Errorf("rank %d sent %v, want %v", r, got, want)
		}
		calls := [2]int64{1, int64(collectives.Windows(w.size(), w.size()+1, 1))}
		if got := c.Calls(); got != calls {
			w.t.Errorf("rank %d made %v calls, want %v", r, got, calls)
		}
		if c.Reset(); c.Sent() != [2]int64{} || c.Calls() != [2]int64{} {
			w.t.Errorf("rank %d: counts after Reset: %v, %v", r, c.Sent(), c.Calls())
		}
	}
}
