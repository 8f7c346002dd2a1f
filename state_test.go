package zeroshard_test

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"gorgonia.org/tensor"

	"zeroshard"
	"zeroshard/models"
	"zeroshard/optim"
	"zeroshard/prng"
	"zeroshard/shard"
	"zeroshard/zero"
)

// worlds are where state rests differently.
var worlds = []struct{ stage, ranks, replicas int }{{0, 1, 1}, {0, 3, 1}, {1, 2, 1}, {2, 3, 1}, {3, 1, 1}, {3, 2, 1}, {3, 3, 1}, {3, 4, 2}}

// eachWorld runs f as a subtest on an odd model in each world.
func eachWorld(t *testing.T, f func(t *testing.T, c zeroshard.Config, cl *zeroshard.Cluster)) {
	for _, w := range worlds {
		t.Run(fmt.Sprintf("stage %d, ranks %d, replicas %d", w.stage, w.ranks, w.replicas), func(t *testing.T) {
			c := oddJob(w.stage, w.ranks)
			c.Replicas = w.replicas
			f(t, c, local(t, c))
		})
	}
}

// params lists a model's parameters in byte order of their names.
func params(m models.Model) (list []shard.Param) {
	for _, f := range m.Flats() {
		list = append(list, f.Params...)
	}
	slices.SortFunc(list, func(a, b shard.Param) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// values makes some for a parameter: bits of all kinds, no two elements alike.
func values(p shard.Param) []float32 {
	v := make([]float32, p.Len())
	prng.New(1).Named(p.Name).FillNormal(v, 0)
	if len(v) > 4 {
		v[0], v[1], v[2] = float32(math.Copysign(0, -1)), math.SmallestNonzeroFloat32, -math.MaxFloat32
	}
	return v
}

func dense(shape []int, v []float32) *tensor.Dense {
	return tensor.New(tensor.WithShape(shape...), tensor.WithBacking(v))
}

// elements are a tensor's, last index fastest, asked for one by one.
func elements(t testing.TB, v *tensor.Dense) []float32 {
	t.Helper()
	if v.IsScalar() {
		return []float32{v.ScalarValue().(float32)}
	}
	var out []float32
	index := make([]int, v.Dims())
	for range v.Shape().TotalSize() {
		x, err := v.At(index...)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, x.(float32))
		for d := len(index) - 1; d >= 0; d-- {
			if index[d]++; index[d] < v.Shape()[d] {
				break
			}
			index[d] = 0
		}
	}
	return out
}

func full(t testing.TB, cl *zeroshard.Cluster, name string) *tensor.Dense {
	t.Helper()
	v, err := cl.Full(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// same compares bits.
func same(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}

func TestParamsAreInByteOrder(t *testing.T) {
	want := []string{"cube", "fixed", "none", "one", "prime", "scalar", "table"}
	if got := local(t, oddJob(3, 2)).Params(); !slices.Equal(got, want) {
		t.Errorf("%v", got)
	}
}

// A model that is no Initializer starts with zeros, an Initializer with what it says for the whole, in every world.
func TestInitialValues(t *testing.T) {
	eachWorld(t, func(t *testing.T, c zeroshard.Config, cl *zeroshard.Cluster) {
		for _, p := range params(c.Model) {
			if p.Len() > 0 && slices.ContainsFunc(elements(t, full(t, cl, p.Name)), func(v float32) bool { return math.Float32bits(v) != 0 }) {
				t.Errorf("%s does not start with zeros", p.Name)
			}
		}
	})
	for _, w := range worlds {
		c := micro(t)
		c.Stage, c.Ranks, c.Replicas = w.stage, w.ranks, w.replicas
		cl := local(t, c)
		for _, p := range params(c.Model) {
			want := make([]float32, p.Len())
			c.Model.(models.Initializer).Init(prng.New(c.Seed).Named("init"), p, 0, want)
			if !same(elements(t, full(t, cl, p.Name)), want) {
				t.Errorf("%+v: %s starts with other values than Init gives", w, p.Name)
			}
		}
	}
}

// What is set is what is read, with its shape; nothing else changes.
func TestSetThenFull(t *testing.T) {
	eachWorld(t, func(t *testing.T, c zeroshard.Config, cl *zeroshard.Cluster) {
		list := params(c.Model)
		for _, p := range list {
			if p.Len() == 0 {
				continue
			}
			if err := cl.Set(ctx, p.Name, dense(p.Shape, values(p))); err != nil {
				t.Fatal(err)
			}
		}
		for _, p := range list {
			if p.Len() == 0 {
				continue
			}
			v := full(t, cl, p.Name)
			if !slices.Equal([]int(v.Shape()), p.Shape) || v.Dtype() != tensor.Float32 {
				t.Errorf("%s is %v %v, want float32 %v", p.Name, v.Dtype(), v.Shape(), p.Shape)
			}
			if !same(elements(t, v), values(p)) {
				t.Errorf("%s: what is read is not what was set", p.Name)
			}
		}
	})
}

// Full and Set copy: neither tensor is tied to the model afterwards.
func TestFullAndSetCopy(t *testing.T) {
	for _, w := range []struct{ stage, ranks int }{{0, 1}, {3, 2}} {
		cl := local(t, oddJob(w.stage, w.ranks))
		before := hash(t, cl)
		v := full(t, cl, "prime")
		clear(v.Data().([]float32))
		v.Data().([]float32)[5] = 1
		if hash(t, cl) != before {
			t.Errorf("%+v: writing to what Full gave changed the state", w)
		}
		if err := cl.Set(ctx, "prime", v); err != nil {
			t.Fatal(err)
		}
		after := hash(t, cl)
		v.Data().([]float32)[5] = 2
		if after == before || hash(t, cl) != after {
			t.Errorf("%+v: Set did not change the state, or the tensor given to it still does", w)
		}
	}
}

// views are tensors of shape [3 4 5] or [5 5] whose elements do not lie as they read.
func views(t testing.TB) map[string]*tensor.Dense {
	t.Helper()
	count := func(n int) []float32 {
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(i)
		}
		return v
	}
	slice := func(v *tensor.Dense, s ...tensor.Slice) *tensor.Dense {
		out, err := v.Slice(s...)
		if err != nil {
			t.Fatal(err)
		}
		return out.(*tensor.Dense)
	}
	transposed := func(v *tensor.Dense, axes ...int) *tensor.Dense {
		if err := v.T(axes...); err != nil {
			t.Fatal(err)
		}
		return v
	}
	big := func() *tensor.Dense { return dense([]int{4, 6, 8}, count(4*6*8)) }
	return map[string]*tensor.Dense{
		"plain":                    dense([]int{3, 4, 5}, count(60)),
		"slice of every dim":       slice(big(), tensor.S(1, 4), tensor.S(2, 6), tensor.S(3, 8)),
		"slice of the last dim":    slice(dense([]int{3, 4, 8}, count(96)), nil, nil, tensor.S(2, 7)),
		"slice of the first dim":   slice(dense([]int{7, 4, 5}, count(140)), tensor.S(2, 5)),
		"every other":              slice(dense([]int{6, 4, 5}, count(120)), tensor.S(0, 6, 2)),
		"transposed":               transposed(dense([]int{5, 4, 3}, count(60))),
		"axes in a circle":         transposed(dense([]int{4, 5, 3}, count(60)), 2, 0, 1),
		"slice of transposed":      slice(transposed(dense([]int{8, 6, 4}, count(192))), tensor.S(1, 4), tensor.S(0, 4), tensor.S(2, 7)),
		"transposed slice":         transposed(slice(dense([]int{8, 6, 4}, count(192)), tensor.S(3, 8), tensor.S(1, 5), tensor.S(0, 3))),
		"column-major":             tensor.New(tensor.WithShape(3, 4, 5), tensor.AsFortran(count(60))),
		"matrix transposed":        transposed(dense([]int{11, 11}, count(121))),
		"columns of a matrix":      slice(dense([]int{11, 20}, count(220)), nil, tensor.S(4, 15)),
		"rows of a transposed one": slice(transposed(dense([]int{11, 20}, count(220))), tensor.S(3, 14)),
		"a column":                 slice(dense([]int{257, 3}, count(771)), nil, tensor.S(1)),
		"every third":              slice(dense([]int{771}, count(771)), tensor.S(0, 771, 3)),
		"an element":               slice(dense([]int{2, 3}, count(6)), tensor.S(1), tensor.S(2)),
	}
}

// A tensor that is a view is copied as it reads. (tensor's own Materialize is wrong for some of these.)
func TestSetReadsViews(t *testing.T) {
	cl := local(t, oddJob(3, 2))
	for name, v := range views(t) {
		t.Run(name, func(t *testing.T) {
			p := "cube"
			switch v.Dims() {
			case 0:
				p = "scalar"
			case 1:
				p = "prime"
			case 2:
				p = "table"
			}
			want := elements(t, v)
			if err := cl.Set(ctx, p, v); err != nil {
				t.Fatal(err)
			}
			if got := elements(t, full(t, cl, p)); !same(got, want) {
				t.Errorf("got  %v\nwant %v", got, want)
			}
			if got := elements(t, v); !same(got, want) {
				t.Error("Set changed the tensor")
			}
		})
	}
}

// Pieces of the ranks are views in place: together they are the parameter, and what is written to them is what everyone reads.
func TestPieceIsAView(t *testing.T) {
	eachWorld(t, func(t *testing.T, c zeroshard.Config, cl *zeroshard.Cluster) {
		for _, p := range params(c.Model) {
			if p.Len() > 0 {
				if err := cl.Set(ctx, p.Name, dense(p.Shape, values(p))); err != nil {
					t.Fatal(err)
				}
			}
			want := values(p)
			owners := make([]int, p.Len())
			for r := range c.Ranks {
				v, from, err := cl.Piece(r, p.Name)
				if err != nil {
					t.Fatal(err)
				}
				if v == nil {
					continue
				}
				n := v.Shape().TotalSize()
				shape := []int{n}
				if n == p.Len() {
					shape = p.Shape
				}
				if !slices.Equal([]int(v.Shape()), shape) {
					t.Errorf("%s on rank %d has shape %v, want %v", p.Name, r, v.Shape(), shape)
				}
				if !same(elements(t, v), want[from:from+n]) {
					t.Errorf("%s on rank %d is not elements [%d,%d)", p.Name, r, from, from+n)
				}
				for i := from; i < from+n; i++ {
					owners[i]++
				}
				negate(t, v)
			}
			copies := c.Replicas
			if c.Stage < 3 {
				copies = c.Ranks
			}
			if slices.ContainsFunc(owners, func(n int) bool { return n != copies }) {
				t.Errorf("%s: elements rest on this many ranks, want %d each: %v", p.Name, copies, owners)
			}
			if p.Len() == 0 {
				continue
			}
			for i := range want {
				want[i] = -want[i]
			}
			if !same(elements(t, full(t, cl, p.Name)), want) {
				t.Errorf("%s: what was written to the pieces is not what Full reads", p.Name)
			}
		}
	})
}

// negate writes through a tensor.
func negate(t testing.TB, v *tensor.Dense) {
	t.Helper()
	if v.IsScalar() {
		v.Set(0, -v.ScalarValue().(float32))
		return
	}
	for i, x := range v.Data().([]float32) {
		v.Data().([]float32)[i] = -x
	}
}

// The state is named by a hash that anyone can compute from the values.
func TestStateSHA256ByHand(t *testing.T) {
	byHand := func(t *testing.T, c zeroshard.Config, cl *zeroshard.Cluster, moments int) string {
		h := sha256.New()
		write := func(v []float32) {
			if err := binary.Write(h, binary.LittleEndian, v); err != nil {
				t.Fatal(err)
			}
		}
		for _, p := range params(c.Model) {
			if p.Len() == 0 {
				continue
			}
			write(elements(t, full(t, cl, p.Name)))
			if !p.Frozen {
				write(make([]float32, moments*p.Len()))
			}
		}
		return hex.EncodeToString(h.Sum(nil))
	}
	// AdamW's moments are zeros before the first step; SGD without momentum has none, so it can be followed through training.
	eachWorld(t, func(t *testing.T, c zeroshard.Config, cl *zeroshard.Cluster) {
		for _, p := range params(c.Model) {
			if p.Len() > 0 {
				if err := cl.Set(ctx, p.Name, dense(p.Shape, values(p))); err != nil {
					t.Fatal(err)
				}
			}
		}
		if got, want := hash(t, cl), byHand(t, c, cl, 2); got != want {
			t.Errorf("AdamW: %s, by hand %s", got, want)
		}
		c.Optimizer = optim.SGD{}
		cl = local(t, c)
		steps(t, cl, c, 1, 2)
		if got, want := hash(t, cl), byHand(t, c, cl, 0); got != want {
			t.Errorf("SGD: %s, by hand %s", got, want)
		}
	})
}

// The hash is the same in every world, before and after training; reading leaves it; a step changes it, and so does one bit of one value.
func TestStateSHA256TellsStatesApart(t *testing.T) {
	var first []string
	eachWorld(t, func(t *testing.T, c zeroshard.Config, cl *zeroshard.Cluster) {
		var seen []string
		look := func(what string) {
			h := hash(t, cl)
			if slices.Contains(seen, h) {
				t.Errorf("%s does not change the hash", what)
			}
			seen = append(seen, h)
			for _, p := range cl.Params() {
				if p != "none" {
					full(t, cl, p)
				}
			}
			if hash(t, cl) != h {
				t.Errorf("%s: reading changes the hash", what)
			}
		}
		look("the start")
		steps(t, cl, c, 1, 1)
		look("a step")
		v := full(t, cl, "fixed")
		v.Data().([]float32)[14] = math.SmallestNonzeroFloat32
		if err := cl.Set(ctx, "fixed", v); err != nil {
			t.Fatal(err)
		}
		look("Set")
		steps(t, cl, c, 2, 3)
		look("two steps")
		if first == nil {
			first = seen
		}
		if !slices.Equal(seen, first) {
			t.Errorf("the hashes are %v, in the first world %v", seen, first)
		}
	})
}

// Frozen parameters take part and do not move, and Set moves them all the same.
func TestFrozenParametersStay(t *testing.T) {
	eachWorld(t, func(t *testing.T, c zeroshard.Config, cl *zeroshard.Cluster) {
		want := slices.Repeat([]float32{1.5}, 15)
		if err := cl.Set(ctx, "fixed", dense([]int{5, 3}, slices.Clone(want))); err != nil {
			t.Fatal(err)
		}
		before := elements(t, full(t, cl, "cube"))
		steps(t, cl, c, 1, 2)
		if !same(elements(t, full(t, cl, "fixed")), want) {
			t.Error("training moved a frozen parameter")
		}
		if same(elements(t, full(t, cl, "cube")), before) {
			t.Error("training did not move one that is not")
		}
	})
}

// Faults of names, shapes and dtypes are told apart, cost nothing, and say what would be right.
func TestStateErrors(t *testing.T) {
	cl := local(t, oddJob(3, 2))
	before := hash(t, cl)
	set := func(name string, v *tensor.Dense) error { return cl.Set(ctx, name, v) }
	piece := func(rank int, name string) error {
		v, _, err := cl.Piece(rank, name)
		if v != nil {
			t.Errorf("Piece(%d, %q) gives a tensor", rank, name)
		}
		return err
	}
	_, unknown := cl.Full(ctx, "tabel")
	_, empty := cl.Full(ctx, "none")
	for _, c := range []struct {
		name     string
		err      error
		sentinel error
		text     string
	}{
		{"Full of an unknown name", unknown, zero.ErrParameter, `zero: no such parameter: "tabel"`},
		{"Full of no elements", empty, zeroshard.ErrValue, `zeroshard: value: "none" of shape [0 3] has no elements, which a tensor cannot hold`},
		{"Set of an unknown name", set("tabel", dense([]int{1}, []float32{1})), zero.ErrParameter, `zero: no such parameter: "tabel"`},
		{"nil", set("one", nil), zeroshard.ErrValue, `zeroshard: value: "one" is given no tensor`},
		{"dtype", set("cube", tensor.New(tensor.WithShape(3, 4, 5), tensor.Of(tensor.Float64))), zeroshard.ErrValue,
			`zeroshard: value: "cube" is float32 of shape [3 4 5], it is given float64 of shape [3 4 5]`},
		{"shape", set("cube", dense([]int{5, 4, 3}, make([]float32, 60))), zeroshard.ErrValue,
			`zeroshard: value: "cube" is float32 of shape [3 4 5], it is given float32 of shape [5 4 3]`},
		{"flat", set("cube", dense([]int{60}, make([]float32, 60))), zeroshard.ErrValue,
			`zeroshard: value: "cube" is float32 of shape [3 4 5], it is given float32 of shape [60]`},
		{"scalar for a vector of one", set("one", dense([]int{}, []float32{1})), zeroshard.ErrValue,
			`zeroshard: value: "one" is float32 of shape [1], it is given float32 of shape []`},
		{"vector of one for a scalar", set("scalar", dense([]int{1}, []float32{1})), zeroshard.ErrValue,
			`zeroshard: value: "scalar" is float32 of shape [], it is given float32 of shape [1]`},
		{"elements for none", set("none", dense([]int{1, 3}, make([]float32, 3))), zeroshard.ErrValue,
			`zeroshard: value: "none" is float32 of shape [0 3], it is given float32 of shape [1 3]`},
		{"Piece of an unknown name", piece(0, "tabel"), zero.ErrParameter, `zero: no such parameter: "tabel"`},
		{"Piece of no rank", piece(2, "cube"), zero.ErrOptions, "zero: options: there is no rank 2"},
		{"Piece of a negative rank", piece(-1, "cube"), zero.ErrOptions, "zero: options: there is no rank -1"},
		{"Piece of no elements", piece(0, "none"), nil, "<nil>"},
		{"Set of no elements", set("none", tensor.New(tensor.WithShape(0, 3), tensor.Of(tensor.Float32))), nil, "<nil>"},
	} {
		if !errors.Is(c.err, c.sentinel) || fmt.Sprint(c.err) != c.text {
			t.Errorf("%s: %v\nwant %s", c.name, c.err, c.text)
		}
	}
	if hash(t, cl) != before {
		t.Error("a refused call changed the state")
	}
}
