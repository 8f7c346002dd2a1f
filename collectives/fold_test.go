package collectives_test

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"zeroshard/collectives"
	"zeroshard/device"
)

// tree is the definition, word for word: a tree over n leaves splits at the largest power of two below n.
func tree[T any](leaves []T, add func(a, b T) T) T {
	n := len(leaves)
	if n == 1 {
		return leaves[0]
	}
	split := 1 << (bits.Len(uint(n-1)) - 1)
	return add(tree(leaves[:split], add), tree(leaves[split:], add))
}

// fold runs all windows of a step on values of any type by the printed program alone.
func fold[T any](t testing.TB, size, window int, leaves []T, add func(a, b T) T) T {
	t.Helper()
	var carry []T
	m := len(leaves)
	for w := range collectives.Windows(size, m, window) {
		f, err := collectives.NewFold(size, m, window, w)
		if err != nil {
			t.Fatalf("NewFold(%d, %d, %d, %d): %v", size, m, window, w, err)
		}
		if f.In != len(carry) {
			t.Fatalf("W=%d M=%d g=%d: window %d reads %d slots, window before wrote %d", size, m, window, w, f.In, len(carry))
		}
		parts := make([]T, size)
		for r := range parts {
			lo, hi := min((w*size+r)*window, m), min((w*size+r+1)*window, m)
			if f.Present[r] != (lo < hi) {
				t.Fatalf("W=%d M=%d g=%d: window %d has rank %d: %t", size, m, window, w, r, f.Present[r])
			}
			if lo < hi {
				parts[r] = tree(leaves[lo:hi], add)
			}
		}
		carry = execute(f, parts, carry, add)
	}
	if len(carry) != 1 {
		t.Fatalf("W=%d M=%d g=%d: %d slots are left after the last window", size, m, window, len(carry))
	}
	return carry[0]
}

// execute is a second executor: no chunks, no memory, no aliases.
func execute[T any](f *collectives.Fold, parts, in []T, add func(a, b T) T) []T {
	places := map[collectives.Operand]T{}
	for i, p := range parts {
		places[collectives.Operand{From: collectives.Part, I: i}] = p
	}
	for i, v := range in {
		places[collectives.Operand{From: collectives.InSlot, I: i}] = v
	}
	for _, op := range f.Ops {
		v := places[op.A]
		if op.B.From != collectives.Nothing {
			v = add(v, places[op.B])
		}
		places[op.Dst] = v
	}
	out := make([]T, f.Out)
	for i := range out {
		out[i] = places[collectives.Operand{From: collectives.OutSlot, I: i}]
	}
	return out
}

func plus(a, b string) string { return "(" + a + "+" + b + ")" }

func names(m int) []string {
	leaves := make([]string, m)
	for i := range leaves {
		leaves[i] = fmt.Sprint(i)
	}
	return leaves
}

func TestTreeOfTheTest(t *testing.T) {
	for m, want := range map[int]string{
		1: "0", 2: "(0+1)", 3: "((0+1)+2)", 6: "(((0+1)+(2+3))+(4+5))", 7: "(((0+1)+(2+3))+((4+5)+6))",
	} {
		if got := tree(names(m), plus); got != want {
			t.Errorf("%d leaves: %s, want %s", m, got, want)
		}
	}
}

// Every world, every number of leaves, every window: one expression.
func TestFoldIsTheTree(t *testing.T) {
	const most = 64
	for m := 1; m <= most; m++ {
		leaves := names(m)
		want := tree(leaves, plus)
		for size := 1; size <= m; size++ {
			for g := 1; g < 2*m; g *= 2 {
				if got := fold(t, size, g, leaves, plus); got != want {
					t.Fatalf("W=%d M=%d g=%d: %s, want %s", size, m, g, got, want)
				}
			}
		}
	}
}

func TestReplicaFoldIsTheTree(t *testing.T) {
	for size := 1; size <= 16; size++ {
		f, err := collectives.ReplicaFold(size)
		if err != nil {
			t.Fatal(err)
		}
		got := execute(f, names(size), nil, plus)
		if want := tree(names(size), plus); len(got) != 1 || got[0] != want || f.In != 0 || slices.Contains(f.Present, false) {
			t.Errorf("%d replicas: %v, want %s", size, got, want)
		}
	}
}

// At most ⌊log₂M⌋+1 slots, none with one window. And Slots must be what the folds say.
func TestSlots(t *testing.T) {
	for m := 1; m <= 64; m++ {
		for size := 1; size <= m; size++ {
			for g := 1; g <= m; g *= 2 {
				windows, want := collectives.Windows(size, m, g), 0
				for w := range windows {
					f, err := collectives.NewFold(size, m, g, w)
					if err != nil {
						t.Fatal(err)
					}
					want = max(want, f.In)
					if f.Temps > bits.Len(uint(size))+1 {
						t.Errorf("W=%d M=%d g=%d: window %d wants %d temporaries", size, m, g, w, f.Temps)
					}
				}
				got := collectives.Slots(size, m, g)
				if got != want || got > bits.Len(uint(m)) || (windows == 1 && got != 0) {
					t.Errorf("W=%d M=%d g=%d: Slots = %d, folds read %d", size, m, g, got, want)
				}
			}
		}
	}
}

func TestNewFoldRefuses(t *testing.T) {
	for _, c := range []struct {
		name                    string
		size, leaves, window, w int
	}{
		{"no ranks", 0, 8, 1, 0}, {"no leaves", 2, 0, 1, 0}, {"no window", 2, 8, 0, 0}, {"negative window", 2, 8, -4, 0},
		{"window of three", 2, 8, 3, 0}, {"window before the first", 2, 8, 1, -1}, {"window after the last", 2, 8, 1, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			f, err := collectives.NewFold(c.size, c.leaves, c.window, c.w)
			if !errors.Is(err, collectives.ErrArgument) || f != nil {
				t.Errorf("%v, %v", f, err)
			}
		})
	}
}

func TestCommonCaseIsOneAddition(t *testing.T) {
	f, err := collectives.NewFold(2, 2, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	want := []collectives.Op{{
		Dst: collectives.Operand{From: collectives.OutSlot},
		A:   collectives.Operand{From: collectives.Part, I: 0},
		B:   collectives.Operand{From: collectives.Part, I: 1},
	}}
	if !slices.Equal(f.Ops, want) || f.Temps != 0 {
		t.Errorf("program %v with %d temporaries", f.Ops, f.Temps)
	}
	c := &calls{}
	out := device.Host(make([]float32, 10*collectives.Chunk))
	f.Run(c, nil, &collectives.Operands{Out: []device.Buffer{out}, Parts: []device.Buffer{out, out}})
	if c.n != 1 {
		t.Errorf("%d calls of Add, want 1 over the whole slice", c.n)
	}
}

type calls struct{ n int }

func (c *calls) Add(device.Stream, device.Buffer, device.Buffer, device.Buffer) { c.n++ }

// adder is the plain loop. Go rounds each float32 addition once.
type adder struct{}

func (adder) Add(_ device.Stream, dst, a, b device.Buffer) {
	d, x, y := dst.Float32s(), a.Float32s(), b.Float32s()
	for i := range d {
		d[i] = x[i] + y[i]
	}
}

// randomLeaves are floats of very different sizes, so that any other order gives other bits.
func randomLeaves(rng *rand.Rand, m, n int) [][]float32 {
	leaves := make([][]float32, m)
	for i := range leaves {
		leaves[i] = make([]float32, n)
		for j := range leaves[i] {
			leaves[i][j] = float32(rng.NormFloat64() * math.Pow(2, float64(rng.IntN(24))))
		}
	}
	return leaves
}

func addSlices(a, b []float32) []float32 {
	sum := make([]float32, len(a))
	for i := range sum {
		sum[i] = a[i] + b[i]
	}
	return sum
}

// aliasing says how the buffers of a run lie.
type aliasing int

const (
	apart   aliasing = iota
	carried          // Out[i] is In[i]
	inPlace          // and the only Out is the part of rank own
)

// runAll runs all windows with Run, and returns the sum. own is the rank that folds.
func runAll(t testing.TB, size, window, own int, leaves [][]float32, how aliasing) []float32 {
	t.Helper()
	m, n := len(leaves), len(leaves[0])
	fresh := func() device.Buffer { return device.Host(make([]float32, n)) }
	var carry []device.Buffer
	for w := range collectives.Windows(size, m, window) {
		f, err := collectives.NewFold(size, m, window, w)
		if err != nil {
			t.Fatal(err)
		}
		o := &collectives.Operands{In: carry, Parts: make([]device.Buffer, size)}
		for r := range size {
			if f.Present[r] {
				lo := (w*size + r) * window
				o.Parts[r] = device.Host(tree(leaves[lo:min(lo+window, m)], addSlices))
			}
		}
		for i := range f.Out {
			switch {
			case how == inPlace && f.Out == 1 && f.Present[own]:
				o.Out = append(o.Out, o.Parts[own])
			case how >= carried && i < len(carry):
				o.Out = append(o.Out, carry[i])
			default:
				o.Out = append(o.Out, fresh())
			}
		}
		for range f.Temps {
			o.Temps = append(o.Temps, device.Host(make([]float32, min(n, collectives.Chunk))))
		}
		f.Run(adder{}, nil, o)
		carry = o.Out
	}
	return carry[0].Float32s()
}

func sameBits(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}

func TestRunIsTheTreeToTheBit(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for m := 1; m <= 17; m++ {
		leaves := randomLeaves(rng, m, 5)
		want := tree(leaves, addSlices)
		for size := 1; size <= m; size++ {
			for g := 1; g <= m; g *= 2 {
				for _, how := range []aliasing{apart, carried, inPlace} {
					for own := range size {
						if how != inPlace && own > 0 {
							break
						}
						got := runAll(t, size, g, own, copyOf(leaves), how)
						if !sameBits(got, want) {
							t.Fatalf("W=%d M=%d g=%d own=%d aliasing %d: %v, want %v", size, m, g, own, how, got, want)
						}
					}
				}
			}
		}
	}
}

func copyOf(leaves [][]float32) [][]float32 {
	c := make([][]float32, len(leaves))
	for i := range c {
		c[i] = slices.Clone(leaves[i])
	}
	return c
}

// Lengths around the chunk, where the last chunk is short.
func TestRunInChunks(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{0, 1, collectives.Chunk - 1, collectives.Chunk, collectives.Chunk + 1, 3*collectives.Chunk + 17} {
		leaves := randomLeaves(rng, 7, n)
		want := tree(leaves, addSlices)
		for _, how := range []aliasing{apart, carried, inPlace} {
			for _, size := range []int{1, 2, 3, 7} {
				if got := runAll(t, size, 1, size-1, copyOf(leaves), how); !sameBits(got, want) {
					t.Errorf("n=%d W=%d aliasing %d: wrong sum", n, size, how)
				}
			}
		}
	}
}

func TestRunAllocatesNothing(t *testing.T) {
	f, err := collectives.NewFold(5, 11, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	buffers := func(n int) (b []device.Buffer) {
		for range n {
			b = append(b, device.Host(make([]float32, 2*collectives.Chunk)))
		}
		return b
	}
	o := &collectives.Operands{Out: buffers(f.Out), In: buffers(f.In), Parts: buffers(5), Temps: buffers(f.Temps)}
	if n := testing.AllocsPerRun(20, func() { f.Run(adder{}, nil, o) }); n != 0 {
		t.Errorf("%v allocations a run, want 0", n)
	}
}

// The tree is also the better sum: its error is bounded by ⌈log₂M⌉·u·Σ|x| (Higham, Accuracy and Stability, 4.2), checked against
// sums of exact rationals.
func checkBound(t testing.TB, leaves [][]float32, got []float32) {
	t.Helper()
	m := len(leaves)
	depth := bits.Len(uint(m - 1))
	for j, g := range got {
		exact, size := new(big.Rat), new(big.Rat)
		for i := range leaves {
			x := new(big.Rat).SetFloat64(float64(leaves[i][j]))
			exact.Add(exact, x)
			size.Add(size, x.Abs(x))
		}
		diff := exact.Sub(exact, new(big.Rat).SetFloat64(float64(g)))
		// 2⁻²⁴(1+2⁻¹⁰) a level covers the second-order terms for depths below 2¹⁰.
		bound := size.Mul(size, big.NewRat(int64(depth)*1025, 1024<<24))
		if diff.Abs(diff).Cmp(bound) > 0 {
			t.Fatalf("element %d of %d leaves: off by %v, bound %v", j, m, diff.FloatString(12), bound.FloatString(12))
		}
	}
}

func FuzzFold(f *testing.F) {
	f.Add(uint64(1), uint8(3), uint8(8), uint8(0))
	f.Add(uint64(2), uint8(8), uint8(8), uint8(0))
	f.Add(uint64(3), uint8(2), uint8(8), uint8(2))
	f.Add(uint64(4), uint8(5), uint8(63), uint8(1))
	f.Fuzz(func(t *testing.T, seed uint64, w, m, log uint8) {
		leaves := max(int(m), 1)
		size, window := int(w)%leaves+1, 1<<(log%9)
		rng := rand.New(rand.NewPCG(seed, 0))
		values := randomLeaves(rng, leaves, 3)
		want := tree(values, addSlices)
		checkBound(t, values, want)
		for _, how := range []aliasing{apart, carried, inPlace} {
			if got := runAll(t, size, window, rng.IntN(size), copyOf(values), how); !sameBits(got, want) {
				t.Errorf("W=%d M=%d g=%d aliasing %d: %v, want %v", size, leaves, window, how, got, want)
			}
		}
	})
}

// Any arguments give a fold or an error, never a panic, and no absurd program.
func FuzzNewFold(f *testing.F) {
	f.Add(2, 8, 1, 0)
	f.Add(3, 1<<62, 1<<40, 5)
	f.Add(1, math.MaxInt, 1<<62, 0)
	f.Fuzz(func(t *testing.T, size, leaves, window, w int) {
		if size > 1<<12 {
			t.Skip("a program is as long as the world is large")
		}
		fold, err := collectives.NewFold(size, leaves, window, w)
		if err != nil {
			if !errors.Is(err, collectives.ErrArgument) || !strings.HasPrefix(err.Error(), "collectives: ") {
				t.Errorf("error %v", err)
			}
			return
		}
		if fold.In > 64 || fold.Out < 1 || fold.Out > 64 || len(fold.Ops) > size+128 {
			t.Errorf("%+v: %d in, %d out, %d operations", fold.FoldID, fold.In, fold.Out, len(fold.Ops))
		}
	})
}

func ExampleNewFold() {
	// Three ranks, eight leaves, one leaf a rank and window: the third window is short.
	for w := range collectives.Windows(3, 8, 1) {
		f, err := collectives.NewFold(3, 8, 1, w)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("window %d: present %v, carry %d -> %d\n%v", w, f.Present, f.In, f.Out, f)
	}
	// Output:
	// window 0: present [true true true], carry 0 -> 2
	//   out0 = part0 + part1
	//   out1 = part2
	// window 1: present [true true true], carry 2 -> 2
	//   tmp0 = in1 + part0
	//   out0 = in0 + tmp0
	//   out1 = part1 + part2
	// window 2: present [true true false], carry 2 -> 1
	//   tmp0 = part0 + part1
	//   tmp0 = in1 + tmp0
	//   out0 = in0 + tmp0
}
