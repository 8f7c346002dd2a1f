package shard_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"zeroshard/shard"
)

// vec is a parameter of n elements.
func vec(name string, n int) shard.Param { return shard.Param{Name: name, Shape: []int{n}} }

// layout makes a layout of one flat "f" or fails the test.
func layout(t testing.TB, params ...shard.Param) *shard.Layout {
	t.Helper()
	l, err := shard.NewLayout([]shard.FlatSpec{{Name: "f", Params: params}}, 0)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func mesh(t testing.TB, replicas, shards int) shard.Mesh {
	t.Helper()
	m, err := shard.NewMesh(replicas, shards)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// checkShards proves invariant 3 and what others build on: shards follow each other and cover the flat, each fits its buffer and
// starts where its buffer starts, buffers cut evenly over replicas, and their pieces are exactly the parameters.
func checkShards(t testing.TB, l *shard.Layout, m shard.Mesh) {
	t.Helper()
	for i := range l.Flats {
		f, size, next := &l.Flats[i], l.ShardLen(i, m), 0
		filled := make(map[string]int)
		for index := range m.Size(shard.Shards) {
			r := l.Shard(i, index, m)
			if r.Lo != next || r.Hi < r.Lo || r.Len() > size || (r.Len() > 0 && r.Lo != index*size) {
				t.Fatalf("%v, flat of %d: shard %d is %v after %d, buffer %d", m, f.Len, index, r, next, size)
			}
			next = r.Hi
			for s := range f.Pieces(r) {
				if s.From != filled[s.Param.Name] || s.Range.Len() <= 0 || s.Range.Lo < r.Lo || s.Range.Hi > r.Hi {
					t.Fatalf("%v: piece %+v of shard %v, %d elements of the parameter came before", m, s, r, filled[s.Param.Name])
				}
				filled[s.Param.Name] += s.Range.Len()
			}
		}
		if next != f.Len || l.FullLen(i, m) != m.Size(shard.Shards)*size || size%(shard.Grain*m.Size(shard.Replicate)) != 0 {
			t.Fatalf("%v: shards of %d end at %d, full buffer %d, shard buffer %d", m, f.Len, next, l.FullLen(i, m), size)
		}
		if waste := l.FullLen(i, m) - f.Len; waste >= shard.Grain*m.World() && waste > 0 {
			t.Fatalf("%v: a flat of %d is padded by %d", m, f.Len, waste)
		}
		for _, s := range f.Segs {
			if filled[s.Param.Name] != s.Param.Len() {
				t.Fatalf("%v: pieces of %q cover %d of %d elements", m, s.Param.Name, filled[s.Param.Name], s.Param.Len())
			}
		}
	}
}

func TestNewLayoutSplitsByClass(t *testing.T) {
	l, err := shard.NewLayout([]shard.FlatSpec{
		{Name: "root", Params: []shard.Param{
			{Name: "wte", Shape: []int{97, 24}},
			{Name: "bias", Shape: []int{5}, NoDecay: true},
			{Name: "fixed", Shape: []int{3}, Frozen: true},
			{Name: "scalar"},
			{Name: "none", Shape: []int{0, 7}},
		}},
		{Name: "empty"},
		{Name: "h.0", Params: []shard.Param{vec("w", 129), vec("v", 128)}},
	}, 6)
	if err != nil {
		t.Fatal(err)
	}
	type flat struct {
		name, spec string
		class      shard.Class
		segs       string
		len        int
	}
	want := []flat{
		{"root", "root", shard.Sharded, "wte[0:2328]", 19 * 128},
		{"root+kept", "root", shard.Kept, "bias[0:5] scalar[128:129] none[256:256]", 256},
		{"root+frozen", "root", shard.Frozen, "fixed[0:3]", 128},
		{"h.0", "h.0", shard.Sharded, "w[0:129] v[256:384]", 384},
	}
	var got []flat
	for _, f := range l.Flats {
		got = append(got, flat{f.Name, f.Spec, f.Class, segs(f), f.Len})
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if g := l.BySpec("root"); !slices.Equal(g, []int{0, 1, 2}) {
		t.Errorf("BySpec(root) = %v", g)
	}
	if g := l.BySpec("empty"); len(g) != 0 {
		t.Errorf("BySpec(empty) = %v", g)
	}
	if f, s, ok := l.Lookup("v"); f != 3 || s != 1 || !ok {
		t.Errorf("Lookup(v) = %d, %d, %v", f, s, ok)
	}
	if _, _, ok := l.Lookup("x"); ok {
		t.Error("Lookup found a parameter that is not there")
	}
	if n := l.Numel(); n != 2328+5+3+1+129+128 {
		t.Errorf("Numel = %d", n)
	}
	if n := l.Trainable(); n != 2328+5+1+129+128 {
		t.Errorf("Trainable = %d", n)
	}
	checkShards(t, l, mesh(t, 2, 3))
}

func TestNewLayoutReportsAllFaults(t *testing.T) {
	_, err := shard.NewLayout([]shard.FlatSpec{
		{Name: "a", Params: []shard.Param{vec("w", 1), vec("w", 2), vec("", 3)}},
		{Name: "a", Params: []shard.Param{vec("neg", -1), {Name: "wraps", Shape: []int{1 << 40, 1 << 40}}}},
		{Name: "", Params: []shard.Param{vec("w", 5), {Name: "wraps to zero", Shape: []int{1 << 32, 1 << 32, 0}}}},
		{Name: "sum", Params: []shard.Param{vec("big1", math.MaxInt/256), vec("big2", math.MaxInt/256+1)}},
	}, 0)
	if !errors.Is(err, shard.ErrLayout) {
		t.Fatalf("error %v is no ErrLayout", err)
	}
	var le *shard.LayoutError
	if !errors.As(err, &le) || le.Spec != "a" || le.Param != "w" {
		t.Errorf("first fault is %+v", le)
	}
	want := []string{
		`shard: flat "a", parameter "w": the name is taken by a parameter of flat "a"`,
		`shard: flat "a": parameter 2 has no name`,
		`shard: flat "a": a flat of this name exists already`,
		`shard: flat "a", parameter "neg": shape [-1] has a negative dim`,
		`shard: flat "a", parameter "wraps": shape [1099511627776 1099511627776] has more than`,
		`shard: flat "": the name is empty`,
		`shard: flat "", parameter "w": the name is taken by a parameter of flat "a"`,
		`shard: flat "sum", parameter "big2": the parameters up to here pass`,
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != len(want) {
		t.Fatalf("%d faults, want %d:\n%v", len(lines), len(want), err)
	}
	for i := range want {
		if !strings.HasPrefix(lines[i], want[i]) {
			t.Errorf("fault %d is %s\nwant %s", i, lines[i], want[i])
		}
	}
}
