package zeroshard_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"zeroshard"
	"zeroshard/collectives"
	"zeroshard/device"
	"zeroshard/models"
	"zeroshard/prng"
	"zeroshard/shard"
	"zeroshard/zero"
)

// wholly is the scores after a text by a forward over all of it, without an engine or a cache.
func wholly(t testing.TB, c zeroshard.Config, cl *zeroshard.Cluster, text []int32) []float32 {
	t.Helper()
	b := zero.Batch{Tokens: make([]int32, c.Seq), Targets: slices.Repeat([]int32{-1}, c.Seq)}
	copy(b.Tokens, text)
	b.Targets[len(text)-1] = 0
	got, err := alone(t, c, cl, models.Shape{Batch: 1, Seq: c.Seq}, b).Logits()
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// growing is texts of all kinds, by call: they grow by one token or more, stand still, wait, start anew, end otherwise, and share nothing.
func growing(c zeroshard.Config, call int, texts [][]int32) [][]int32 {
	key := prng.New(5).Sub(uint64(call))
	next := make([][]int32, len(texts))
	for i, t := range texts {
		k := key.Sub(uint64(i))
		t = slices.Clone(t)
		switch k.Intn(0, 6) {
		case 0:
			t = nil
		case 1:
			t = t[:len(t)/2]
		case 2:
			if len(t) > 0 {
				t[k.Intn(1, len(t))] = 7
			}
		case 3: // as it was
		default:
			for n := 0; n < 1+k.Intn(2, 3) && len(t) < c.Seq; n++ {
				t = append(t, int32(k.Intn(uint64(10+n), vocab(c))))
			}
		}
		next[i] = t
	}
	return next
}

// What a batch of texts scores is, bit for bit, what each scores alone by a forward over all of it, whatever came between and however the
// texts changed from call to call: at stages and worlds, for clusters that train and that do not.
func TestScoresRememberWhatHolds(t *testing.T) {
	between := map[string]func(t *testing.T, cl *zeroshard.Cluster, c zeroshard.Config){
		"nothing": func(*testing.T, *zeroshard.Cluster, zeroshard.Config) {},
		"Eval": func(t *testing.T, cl *zeroshard.Cluster, c zeroshard.Config) {
			if _, err := cl.Eval(ctx, leaves(c, 0)); err != nil {
				t.Fatal(err)
			}
		},
		"Step": func(t *testing.T, cl *zeroshard.Cluster, c zeroshard.Config) {
			if !c.Inference {
				steps(t, cl, c, 1, 1)
			}
		},
		"Full": func(t *testing.T, cl *zeroshard.Cluster, _ zeroshard.Config) { full(t, cl, "wte.weight") },
		"Set": func(t *testing.T, cl *zeroshard.Cluster, _ zeroshard.Config) {
			v := full(t, cl, "h.1.ln_1.weight")
			v.Data().([]float32)[3]++
			if err := cl.Set(ctx, "h.1.ln_1.weight", v); err != nil {
				t.Fatal(err)
			}
		},
	}
	for _, w := range []struct {
		stage, ranks int
		inference    bool
	}{{0, 1, false}, {3, 3, false}, {0, 1, true}, {3, 2, true}} {
		for name, disturb := range between {
			t.Run(fmt.Sprintf("stage %d, ranks %d, inference %t, %s", w.stage, w.ranks, w.inference, name), func(t *testing.T) {
				c := micro(t)
				c.Stage, c.Ranks, c.Texts, c.Prefetch = w.stage, w.ranks, 3, 1
				source := local(t, c, reference)
				c.Inference = w.inference
				cl := local(t, c, reference)
				if err := cl.Load(ctx, from(t, source)); err != nil {
					t.Fatal(err)
				}
				texts := make([][]int32, 3)
				for call := range 12 {
					texts = growing(c, call, texts)
					got, err := cl.Scores(ctx, texts)
					if err != nil {
						t.Fatal(err)
					}
					rows := make([][]float32, len(got))
					for i := range got {
						rows[i] = slices.Clone(got[i])
					}
					for i, text := range texts {
						if len(text) == 0 {
							if rows[i] != nil {
								t.Errorf("call %d: an empty text scores %v", call, rows[i])
							}
						} else if call%4 == 3 { // looking at parameters makes the cluster forget
							if want := wholly(t, c, cl, text); !same(rows[i], want) {
								t.Fatalf("call %d, text %d %v: got %v, want %v", call, i, text, rows[i], want)
							}
						}
					}
					disturb(t, cl, c)
				}
			})
		}
	}
}

// from reads the parameters of another cluster.
func from(t testing.TB, cl *zeroshard.Cluster) func(name string, lo int, dst []float32) error {
	values := map[string][]float32{}
	for _, name := range cl.Params() {
		values[name] = elements(t, full(t, cl, name))
	}
	return func(name string, lo int, dst []float32) error {
		copy(dst, values[name][lo:])
		return nil
	}
}

// A text that goes on costs one pass a token: what is gathered says so. After Piece every call starts anew, since its views can be written to.
func TestScoresComputeNewTokensAlone(t *testing.T) {
	c := micro(t)
	c.Stage, c.Ranks, c.Seq = 3, 2, 16
	var gathers atomic.Int64
	cl := local(t, c, zeroshard.WithGroup(func(_ int, axis shard.Axis, g collectives.Group) collectives.Group {
		return gatherCount{g, &gathers}
	}))
	pass := int64(2 * (1 + 2 + 1)) // root, two blocks, root again; on both ranks
	for _, x := range []struct {
		tokens int
		passes int64
	}{{1, 1}, {2, 1}, {9, 1}, {10, 1}, {10, 1}, {3, 1}} {
		before := gathers.Load()
		if _, err := cl.Logits(ctx, make([]int32, x.tokens)); err != nil {
			t.Fatal(err)
		}
		if got := gathers.Load() - before; got != x.passes*pass {
			t.Errorf("%d tokens: %d gathers, want %d", x.tokens, got, x.passes*pass)
		}
	}
	view, _, err := cl.Piece(0, "h.0.ln_1.weight")
	if err != nil {
		t.Fatal(err)
	}
	before := slices.Clone(must(cl.Logits(ctx, []int32{1, 2, 3})))
	for i := range view.Data().([]float32) {
		view.Data().([]float32)[i] += 2
	}
	if same(before, must(cl.Logits(ctx, []int32{1, 2, 3}))) {
		t.Error("what was written to a view of Piece is not seen")
	}
}

func must(v []float32, err error) []float32 {
	if err != nil {
		panic(err)
	}
	return v
}

// A cluster for inference holds what was planned, which is parameters and one pass, and refuses to train.
func TestInference(t *testing.T) {
	for _, w := range []struct{ stage, ranks int }{{0, 1}, {3, 1}, {3, 3}} {
		train := preset(t, "micro")
		train.Stage, train.Ranks, train.GlobalBatch = w.stage, w.ranks, 3
		source := local(t, train)
		c := zeroshard.Config{Model: train.Model, Ranks: w.ranks, Stage: w.stage, Seq: train.Seq, Inference: true, Texts: 2, EvalLeaves: 3}
		cl := local(t, c)
		if got := must(cl.Logits(ctx, []int32{1})); slices.ContainsFunc(got, func(v float32) bool { return v != 0 }) {
			t.Errorf("before Load the scores are %v", got)
		}
		if err := cl.Load(ctx, from(t, source)); err != nil {
			t.Fatal(err)
		}
		if a, b := hash(t, cl), hash(t, source); a == b {
			t.Error("the state of inference has an optimizer's part")
		}
		for _, tokens := range [][]int32{{5}, {5, 6, 7}, {5, 6, 7, 8}} {
			if !same(must(cl.Logits(ctx, tokens)), must(source.Logits(ctx, tokens))) {
				t.Errorf("%+v: %v scores otherwise than where it was trained", w, tokens)
			}
		}
		eval := func(cl *zeroshard.Cluster) zero.Loss {
			l, err := cl.Eval(ctx, leaves(train, 0))
			if err != nil {
				t.Fatal(err)
			}
			return l
		}
		if a, b := eval(cl), eval(source); a != b {
			t.Errorf("%+v: loss %v, where it was trained %v", w, a, b)
		}
		for _, m := range cl.Memory() {
			if m.Planned != m.Used || m.Live == 0 {
				t.Errorf("%+v: rank %d planned %d bytes and used %d", w, m.Rank, m.Planned, m.Used)
			}
			for _, kind := range []string{"gradient", "gradient_shard", "optimizer"} {
				if m.UsedBy[kind] != 0 {
					t.Errorf("%+v: rank %d holds %d bytes of %s", w, m.Rank, m.UsedBy[kind], kind)
				}
			}
		}
		if _, err := cl.Step(ctx, leaves(train, 1), hyper(1)); !errors.Is(err, zero.ErrOptions) || !strings.Contains(err.Error(), "cannot train") {
			t.Errorf("Step says %v", err)
		}
		if _, err := cl.Logits(ctx, []int32{1}); err != nil {
			t.Errorf("after a refused Step: %v", err)
		}
		if _, err := cl.Scores(ctx, make([][]int32, 3)); !errors.Is(err, zero.ErrBatch) {
			t.Errorf("three texts where two were planned: %v", err)
		}
	}
}

// An error of the source ends a Load on all ranks.
func TestLoadThatFails(t *testing.T) {
	c := micro(t)
	c.Stage, c.Ranks, c.Inference = 3, 3, true
	cl := local(t, c)
	gone := errors.New("the file is gone")
	err := cl.Load(ctx, func(name string, lo int, dst []float32) error {
		if name == "h.1.attn.c_attn.weight" {
			return gone
		}
		return nil
	})
	if !errors.Is(err, gone) || !strings.Contains(err.Error(), "h.1.attn.c_attn.weight") {
		t.Errorf("Load says %v", err)
	}
	if _, err := cl.Logits(ctx, []int32{1}); !errors.Is(err, gone) {
		t.Errorf("after it, Logits says %v", err)
	}
}

// gatherCount counts gathers of parameters.
type gatherCount struct {
	collectives.Group
	n *atomic.Int64
}

func (c gatherCount) AllGather(ctx context.Context, s device.Stream, dst, src device.Buffer) error {
	c.n.Add(1)
	return c.Group.AllGather(ctx, s, dst, src)
}
