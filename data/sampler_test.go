package data_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"zeroshard/data"
	"zeroshard/prng"
)

// count is 0, 1, 2, …: a window shows where it starts.
func count(n int) data.Memory {
	m := make(data.Memory, n)
	for i := range m {
		m[i] = int32(i)
	}
	return m
}

func leaf(t *testing.T, s data.Sampler, step, n int) (tokens, targets []int32) {
	t.Helper()
	tokens, targets = make([]int32, s.Batch*s.Seq), make([]int32, s.Batch*s.Seq)
	if err := s.Leaf(step, n, tokens, targets); err != nil {
		t.Fatal(err)
	}
	return tokens, targets
}

func TestLeaf(t *testing.T) {
	s := data.Sampler{Key: prng.New(1337), Tokens: count(1000), Batch: 3, Seq: 5}
	x, y := leaf(t, s, 7, 2)
	for b := range s.Batch {
		for i := range s.Seq {
			if at := b*s.Seq + i; x[at] != x[b*s.Seq]+int32(i) || y[at] != x[at]+1 {
				t.Fatalf("sequence %d: tokens %v, targets %v", b, x, y)
			}
		}
	}
	again, _ := leaf(t, s, 7, 2)
	if !slices.Equal(x, again) {
		t.Error("the same leaf twice is not the same")
	}
	one := s
	one.Batch = 1
	if first, _ := leaf(t, one, 7, 2); !slices.Equal(x[:s.Seq], first) {
		t.Error("the first sequence depends on how many follow")
	}
	seen := map[string]string{}
	for _, key := range []uint64{1, 2} {
		for step := range 5 {
			for l := range 5 {
				s.Key = prng.New(key)
				x, _ := leaf(t, s, step, l)
				name, place := fmt.Sprint(x), fmt.Sprint(key, step, l)
				if other := seen[name]; other != "" {
					t.Errorf("leaf %s equals leaf %s", place, other)
				}
				seen[name] = place
			}
		}
	}
}

// Golden offsets: a change here changes the data of every run.
func TestLeafGolden(t *testing.T) {
	s := data.Sampler{Key: prng.New(1337), Tokens: count(567198), Batch: 2, Seq: 128}
	var got []int32
	for _, at := range [][2]int{{0, 0}, {0, 1}, {1, 0}, {499, 7}} {
		x, _ := leaf(t, s, at[0], at[1])
		got = append(got, x[0], x[s.Seq])
	}
	want := []int32{326549, 238727, 53386, 554663, 399662, 378128, 234492, 184197}
	if !slices.Equal(got, want) {
		t.Errorf("starts %v, want %v", got, want)
	}
}

// Every place can be drawn, the first and the last too, and none past it.
func TestLeafCoversAll(t *testing.T) {
	s := data.Sampler{Tokens: count(12), Batch: 1, Seq: 4}
	seen := map[int32]int{}
	for step := range 800 {
		x, _ := leaf(t, s, step, 0)
		seen[x[0]]++
	}
	for at := range int32(8) {
		if n := seen[at]; n < 60 || n > 140 {
			t.Errorf("place %d drawn %d times of 800, want about 100", at, n)
		}
	}
}

func TestEvalLeaf(t *testing.T) {
	for _, c := range []struct{ tokens, batch, seq, leaves int }{
		{25, 2, 4, 3},     // exactly enough
		{24, 2, 4, 3},     // one too few
		{5, 1, 4, 1},      // one window
		{5, 2, 4, 4},      // one place for many
		{1000, 1, 1, 999}, // every place
		{56_720, 1, 128, 8},
	} {
		s := data.Sampler{Tokens: count(c.tokens), Batch: c.batch, Seq: c.seq}
		var starts []int
		for i := range c.leaves {
			x, y := make([]int32, c.batch*c.seq), make([]int32, c.batch*c.seq)
			if err := s.EvalLeaf(i, c.leaves, x, y); err != nil {
				t.Fatalf("%+v: %v", c, err)
			}
			for b := range c.batch {
				starts = append(starts, int(x[b*c.seq]))
			}
			if y[0] != x[0]+1 {
				t.Errorf("%+v: tokens %v, targets %v", c, x, y)
			}
		}
		enough := c.leaves*c.batch*c.seq+1 <= c.tokens
		for i := 1; i < len(starts); i++ {
			if d := starts[i] - starts[i-1]; d < 0 || (enough && d < c.seq) {
				t.Errorf("%+v: windows start at %v", c, starts)
				break
			}
		}
		if last := starts[len(starts)-1]; starts[0] != 0 || (len(starts) > 1 && last != c.tokens-c.seq-1) {
			t.Errorf("%+v: windows start at %v, want the first and the last place among them", c, starts)
		}
	}
}

func TestSamplerFaults(t *testing.T) {
	x := make([]int32, 8)
	s := data.Sampler{Tokens: count(9), Batch: 2, Seq: 4}
	for name, err := range map[string]error{
		"short slice":   s.Leaf(0, 0, x[:7], x),
		"eval leaf":     s.EvalLeaf(2, 2, x, slices.Clone(x)),
		"too few":       (&data.Sampler{Tokens: count(8), Batch: 1, Seq: 8}).Leaf(0, 0, x, slices.Clone(x)),
		"too few, eval": (&data.Sampler{Tokens: count(8), Batch: 1, Seq: 8}).EvalLeaf(0, 1, x, slices.Clone(x)),
	} {
		if !errors.Is(err, data.ErrRange) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func ExampleSampler() {
	var text data.Memory // tokens of your own; OpenSet reads files
	for _, b := range []byte("Light is propagated in time.") {
		text = append(text, int32(b))
	}
	s := data.Sampler{Key: prng.New(1), Tokens: text, Batch: 1, Seq: 10}
	tokens, targets := make([]int32, 10), make([]int32, 10)
	for leaf := range 2 { // leaves of step 0: the same on every rank and world
		if err := s.Leaf(0, leaf, tokens, targets); err != nil {
			fmt.Println(err)
		}
		fmt.Printf("%q -> %q\n", data.Text(tokens), data.Text(targets))
	}
	// Output:
	// "opagated i" -> "pagated in"
	// "agated in " -> "gated in t"
}
