package zeroshard_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"zeroshard"
	"zeroshard/collectives"
	"zeroshard/device"
	"zeroshard/kernels"
	"zeroshard/kernels/ref"
	"zeroshard/memory"
	"zeroshard/models"
	"zeroshard/models/modeltest"
	"zeroshard/optim"
	"zeroshard/shard"
	"zeroshard/zero"
)

// reference makes the ranks compute with the readable truth.
var reference = zeroshard.WithKernels(func(int, kernels.Backend) kernels.Backend { return ref.New() })

// alone is a leaf of the cluster's model with the cluster's parameters, to be run without any engine.
func alone(t testing.TB, c zeroshard.Config, cl *zeroshard.Cluster, s models.Shape, b zero.Batch) *modeltest.Leaf {
	t.Helper()
	l := modeltest.NewLeaf(ref.New(), c.Model, s, vocab(c))
	for _, p := range params(c.Model) {
		if p.Len() > 0 {
			l.Params[p.Name] = elements(t, full(t, cl, p.Name))
		}
	}
	l.Tokens, l.Targets = b.Tokens, b.Targets
	return l
}

// Logits are those of a forward by hand, bit for bit, for prompts of every length, at all stages and worlds.
func TestLogitsEqualAForwardByHand(t *testing.T) {
	for name, base := range map[string]zeroshard.Config{"micro": micro(t), "odd": oddJob(0, 1)} {
		for _, w := range worlds {
			t.Run(fmt.Sprintf("%s, stage %d, ranks %d, replicas %d", name, w.stage, w.ranks, w.replicas), func(t *testing.T) {
				c := base
				c.Stage, c.Ranks, c.Replicas = w.stage, w.ranks, w.replicas
				cl := local(t, c, reference)
				steps(t, cl, c, 1, 1)
				before := hash(t, cl)
				for n := 1; n <= c.Seq; n += 3 {
					prompt := batch(c, 9, n).Tokens[:n]
					b := zero.Batch{Tokens: make([]int32, c.Seq), Targets: slices.Repeat([]int32{-1}, c.Seq)}
					copy(b.Tokens, prompt)
					b.Targets[n-1] = 0
					want, err := alone(t, c, cl, models.Shape{Batch: 1, Seq: c.Seq}, b).Logits()
					if err != nil {
						t.Fatal(err)
					}
					got, err := cl.Logits(ctx, prompt)
					if err != nil {
						t.Fatal(err)
					}
					if len(got) != vocab(c) || !same(got, want) {
						t.Errorf("%d tokens: got  %v\nwant %v", n, got, want)
					}
				}
				if hash(t, cl) != before {
					t.Error("Logits changed the state")
				}
			})
		}
	}
}

// The loss of an evaluation is that of its leaves by hand, added in their order, at all stages and worlds; it changes nothing.
func TestEvalEqualsLeavesByHand(t *testing.T) {
	for _, w := range worlds {
		t.Run(fmt.Sprintf("stage %d, ranks %d, replicas %d", w.stage, w.ranks, w.replicas), func(t *testing.T) {
			c := micro(t)
			c.Stage, c.Ranks, c.Replicas = w.stage, w.ranks, w.replicas
			cl := local(t, c, reference)
			steps(t, cl, c, 1, 1)
			before := hash(t, cl)
			var want zero.Loss
			for i := range c.EvalLeaves {
				r, err := alone(t, c, cl, models.Shape{Batch: 1, Seq: c.Seq}, batch(c, 0, i)).Eval()
				if err != nil {
					t.Fatal(err)
				}
				want.Sum += r.Loss
				want.Tokens += r.Valid
			}
			for range 2 {
				got, err := cl.Eval(ctx, leaves(c, 0))
				if err != nil || got != want {
					t.Errorf("got %v (%v), want %v", got, err, want)
				}
			}
			if hash(t, cl) != before {
				t.Error("Eval changed the state")
			}
		})
	}
}

// Passes between steps leave no trace in training: activations, gathered weights and arenas are shared, state is not.
func TestPassesBetweenStepsChangeNothing(t *testing.T) {
	c := micro(t)
	c.Stage, c.Prefetch = 3, 1
	plain, busy := local(t, c), local(t, c)
	steps(t, plain, c, 1, 3)
	for step := 1; step <= 3; step++ {
		steps(t, busy, c, step, step)
		if _, err := busy.Eval(ctx, leaves(c, 0)); err != nil {
			t.Fatal(err)
		}
		if _, err := busy.Logits(ctx, []int32{1, 2}); err != nil {
			t.Fatal(err)
		}
		full(t, busy, "wte.weight")
	}
	if hash(t, plain) != hash(t, busy) {
		t.Error("training with passes between steps leads elsewhere")
	}
}

// Each leaf is asked for once, whoever computes it.
func TestEveryLeafIsAskedForOnce(t *testing.T) {
	for _, w := range []struct{ ranks, replicas int }{{1, 1}, {3, 1}, {8, 1}, {4, 2}} {
		c := micro(t)
		c.Ranks, c.Replicas, c.Stage, c.EvalLeaves = w.ranks, w.replicas, 3, 5
		cl := local(t, c)
		var mu sync.Mutex
		asked := map[int]int{}
		leaf := func(i int) (zero.Batch, error) {
			mu.Lock()
			defer mu.Unlock()
			asked[i]++
			return batch(c, 1, i), nil
		}
		once := func(what string, n int) {
			want := map[int]int{}
			for i := range n {
				want[i] = 1
			}
			if !maps.Equal(asked, want) {
				t.Errorf("%+v: %s asked for %v", w, what, asked)
			}
			clear(asked)
		}
		if _, err := cl.Step(ctx, leaf, hyper(1)); err != nil {
			t.Fatal(err)
		}
		once("Step", 8)
		if _, err := cl.Eval(ctx, leaf); err != nil {
			t.Fatal(err)
		}
		once("Eval", 5)
	}
}

// A bad argument that all ranks see alike is an error before anything is issued: the cluster goes on as if it had not been.
func TestBadArgumentsLeaveTheClusterUsable(t *testing.T) {
	done, cancel := context.WithCancelCause(ctx)
	gone := errors.New("gone home")
	cancel(gone)
	never := func(int) (zero.Batch, error) { panic("a refused call asked for a leaf") }
	step := func(ctx context.Context, h optim.Hyper) func(*zeroshard.Cluster) error {
		return func(cl *zeroshard.Cluster) error { _, err := cl.Step(ctx, never, h); return err }
	}
	logits := func(ctx context.Context, n int) func(*zeroshard.Cluster) error {
		return func(cl *zeroshard.Cluster) error {
			got, err := cl.Logits(ctx, make([]int32, n))
			if got != nil {
				t.Errorf("%d tokens: logits %v beside the error %v", n, got, err)
			}
			return err
		}
	}
	scores := func(ctx context.Context, n int) func(*zeroshard.Cluster) error {
		return func(cl *zeroshard.Cluster) error { _, err := cl.Scores(ctx, [][]int32{make([]int32, n)}); return err }
	}
	cases := []struct {
		name     string
		call     func(*zeroshard.Cluster) error
		sentinel error
		text     string
	}{
		{"step 0", step(ctx, optim.Hyper{LR: 1}), optim.ErrOptimizer, "optim: setting: step 0: steps count from 1"},
		{"negative step", step(ctx, optim.Hyper{Step: -1, LR: 1}), optim.ErrOptimizer, "optim: setting: step -1: steps count from 1"},
		{"update after the step", step(ctx, optim.Hyper{Step: 1, Update: 2}), optim.ErrOptimizer, "optim: setting: update 2 of step 1: use 1 to the step, or 0 for the step"},
		{"negative rate", step(ctx, optim.Hyper{Step: 1, LR: -1}), optim.ErrOptimizer, "optim: setting: learning rate -1: use 0 or more"},
		{"rate NaN", step(ctx, optim.Hyper{Step: 1, LR: math.NaN()}), optim.ErrOptimizer, "optim: setting: learning rate NaN: use 0 or more"},
		{"rate infinite in fp32", step(ctx, optim.Hyper{Step: 1, LR: 1e300}), optim.ErrOptimizer, "optim: setting: learning rate 1e+300: use 0 or more"},
		{"no tokens", logits(ctx, 0), zero.ErrBatch, "zero: batch: 0 tokens: between 1 and 8 are needed"},
		{"too many tokens", logits(ctx, 9), zero.ErrBatch, "zero: batch: 9 tokens: between 1 and 8 are needed"},
		{"too long a text", scores(ctx, 9), zero.ErrBatch, "zero: batch: text 0 has 9 tokens: at most 8 fit"},
		{"Step in an ended context", step(done, hyper(1)), gone, "zeroshard: Step: gone home"},
		{"Logits in an ended context", logits(done, 1), gone, "zeroshard: Logits: gone home"},
		{"Scores in an ended context", scores(done, 1), gone, "zeroshard: Scores: gone home"},
		{"Eval in an ended context", func(cl *zeroshard.Cluster) error { _, err := cl.Eval(done, never); return err }, gone, "zeroshard: Eval: gone home"},
		{"Full in an ended context", func(cl *zeroshard.Cluster) error { _, err := cl.Full(done, "wte.weight"); return err }, gone, "zeroshard: Full: gone home"},
		{"Set in an ended context", func(cl *zeroshard.Cluster) error { return cl.Set(done, "wte.weight", nil) }, gone, "zeroshard: Set: gone home"},
		{"StateSHA256 in an ended context", func(cl *zeroshard.Cluster) error { _, err := cl.StateSHA256(done); return err }, gone, "zeroshard: StateSHA256: gone home"},
		{"unknown name", func(cl *zeroshard.Cluster) error { _, err := cl.Full(ctx, "wte"); return err }, zero.ErrParameter, `zero: no such parameter: "wte"`},
	}
	for _, w := range []struct{ stage, ranks int }{{0, 1}, {3, 3}} {
		c := micro(t)
		c.Stage, c.Ranks = w.stage, w.ranks
		cl, untouched := local(t, c), local(t, c)
		steps(t, cl, c, 1, 1)
		for _, x := range cases {
			if err := x.call(cl); !errors.Is(err, x.sentinel) || err.Error() != x.text {
				t.Errorf("%+v: %s: %v", w, x.name, err)
			}
		}
		steps(t, cl, c, 2, 2)
		steps(t, untouched, c, 1, 2)
		if hash(t, cl) != hash(t, untouched) {
			t.Errorf("%+v: refused calls changed the run", w)
		}
	}
}

// A model whose last unit gives no logits trains, and says so when asked for them.
func TestModelWithoutLogits(t *testing.T) {
	c := oddJob(3, 2)
	c.Model = odd{noLogits: true}
	cl := local(t, c)
	if got, err := cl.Logits(ctx, []int32{1}); !errors.Is(err, zero.ErrOptions) || got != nil ||
		!strings.Contains(err.Error(), "the model's last unit, loss, gives no logits") {
		t.Errorf("logits %v, %v", got, err)
	}
	steps(t, cl, c, 1, 2)
}

var errLeaf = errors.New("disk on fire")

// What one rank alone can see ends all ranks: they are in the middle of one plan. The error is that rank's own, every later call gives
// it again, and nothing hangs or leaks (goleak).
func TestOneRanksFailureEndsAll(t *testing.T) {
	for _, f := range []struct {
		name  string
		spoil func(*zero.Batch) error
		is    error
		text  string
	}{
		{"leaf that fails", func(*zero.Batch) error { return errLeaf }, errLeaf, "zeroshard: micro-batch 2: disk on fire"},
		{"too few tokens", func(b *zero.Batch) error { b.Tokens = b.Tokens[1:]; return nil }, zero.ErrBatch, "micro-batch 2 has 7 tokens and 8 targets, both must be 8"},
		{"no targets", func(b *zero.Batch) error { b.Targets = nil; return nil }, zero.ErrBatch, "micro-batch 2 has 8 tokens and 0 targets, both must be 8"},
		{"unknown token", func(b *zero.Batch) error { b.Tokens[3] = 97; return nil }, zero.ErrBatch, "micro-batch 2: zero: batch: gpt: no such token: token 97 at place 3"},
		{"negative token", func(b *zero.Batch) error { b.Tokens[3] = -5; return nil }, zero.ErrBatch, "token -5 at place 3"},
		{"unknown target", func(b *zero.Batch) error { b.Targets[2] = 97; return nil }, zero.ErrBatch, "target 97 at place 2"},
	} {
		for _, call := range []string{"Step", "Eval"} {
			t.Run(f.name+" in "+call, func(t *testing.T) {
				c := micro(t)
				c.Stage, c.Ranks, c.Prefetch = 3, 3, 1
				cl := local(t, c)
				leaf := func(i int) (zero.Batch, error) {
					b := batch(c, 1, i)
					if i != 2 {
						return b, nil
					}
					err := f.spoil(&b)
					return b, err
				}
				err := run(cl, call, ctx, leaf)
				if !errors.Is(err, f.is) || !strings.Contains(fmt.Sprint(err), f.text) {
					t.Fatalf("%v", err)
				}
				for _, again := range []string{"Step", "Eval", "Logits", "Scores", "Full", "Set", "StateSHA256"} {
					next := run(cl, again, ctx, leaves(c, 1))
					if want := fmt.Sprintf("zeroshard: %s after a failure, which ended the cluster: %v", again, err); fmt.Sprint(next) != want {
						t.Errorf("%s afterwards: %v\nwant %s", again, next, want)
					}
				}
			})
		}
	}
}

// run calls a method by name.
func run(cl *zeroshard.Cluster, method string, ctx context.Context, leaf func(int) (zero.Batch, error)) (err error) {
	name := cl.Params()[0]
	switch method {
	case "Step":
		_, err = cl.Step(ctx, leaf, hyper(1))
	case "Eval":
		_, err = cl.Eval(ctx, leaf)
	case "Logits":
		_, err = cl.Logits(ctx, []int32{1})
	case "Scores":
		_, err = cl.Scores(ctx, [][]int32{{1}})
	case "Full":
		_, err = cl.Full(ctx, name)
	case "Set":
		err = cl.Set(ctx, name, nil)
	case "StateSHA256":
		_, err = cl.StateSHA256(ctx)
	case "Piece":
		_, _, err = cl.Piece(0, name)
	}
	return err
}

// A context that ends in the middle of a call ends all ranks, with its cause.
func TestContextThatEnds(t *testing.T) {
	gone := errors.New("gone home")
	for _, call := range []string{"Step", "Eval"} {
		c := micro(t)
		c.Stage, c.Ranks = 3, 3
		cl := local(t, c)
		dying, cancel := context.WithCancelCause(ctx)
		err := run(cl, call, dying, func(i int) (zero.Batch, error) {
			cancel(gone)
			return batch(c, 1, i), nil
		})
		if !errors.Is(err, gone) {
			t.Errorf("%s: %v", call, err)
		}
		if err := run(cl, "Eval", ctx, leaves(c, 1)); !errors.Is(err, gone) {
			t.Errorf("Eval after %s: %v", call, err)
		}
	}
}

// After Close every call says so; what was counted can still be asked for; a second Close does nothing.
func TestUseAfterClose(t *testing.T) {
	c := micro(t)
	c.Stage, c.Ranks = 3, 2
	cl := local(t, c)
	steps(t, cl, c, 1, 1)
	names, memory, wire := cl.Params(), fmt.Sprint(cl.Memory()), fmt.Sprint(cl.Wire())
	for range 2 {
		if err := cl.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, method := range []string{"Step", "Eval", "Logits", "Scores", "Full", "Set", "StateSHA256", "Piece"} {
		err := run(cl, method, ctx, func(int) (zero.Batch, error) { panic("a closed cluster asked for a leaf") })
		if want := "zero: engine is closed: " + method + " came after Close"; !errors.Is(err, zero.ErrClosed) || err.Error() != want {
			t.Errorf("%s: %v", method, err)
		}
	}
	if !slices.Equal(cl.Params(), names) || fmt.Sprint(cl.Wire()) != wire {
		t.Errorf("parameters %v, wire %v, want %v, %s", cl.Params(), cl.Wire(), names, wire)
	}
	for i, m := range cl.Memory() {
		if m.Used != m.Planned || m.Rank != i {
			t.Errorf("memory %+v, before %s", m, memory)
		}
	}
}

// Memory has an entry for each rank, in their order: planned is used, in all and by kind, and between steps only what rests is live.
func TestMemory(t *testing.T) {
	for _, w := range worlds {
		c := oddJob(w.stage, w.ranks)
		c.Replicas = w.replicas
		cl := local(t, c)
		cost := cl.Program().Cost()
		for _, trained := range []bool{false, true} {
			if trained {
				steps(t, cl, c, 1, 2)
			}
			list := cl.Memory()
			if len(list) != w.ranks {
				t.Fatalf("%+v: %d entries", w, len(list))
			}
			for r, m := range list {
				if m.Rank != r || m.Planned != cost.Peak() || m.Used != m.Planned {
					t.Errorf("%+v: %+v, planned %d", w, m, cost.Peak())
				}
				if rest := cost.ModelState + cost.Scratch + cost.Workspace; m.Live != rest {
					t.Errorf("%+v: rank %d: %d bytes live between steps, %d rest", w, r, m.Live, rest)
				}
				if trained && !maps.Equal(m.UsedBy, m.PlannedBy) {
					t.Errorf("%+v: rank %d: used %v, planned %v", w, r, m.UsedBy, m.PlannedBy)
				}
				sum := int64(0)
				for _, n := range m.UsedBy {
					sum += n
				}
				if sum != m.Used {
					t.Errorf("%+v: rank %d: the kinds sum to %d of %d bytes", w, r, sum, m.Used)
				}
			}
		}
	}
}

// Wire is the last step's, as the plan says for each rank; passes between steps do not count.
func TestWire(t *testing.T) {
	for _, w := range worlds {
		c := oddJob(w.stage, w.ranks)
		c.Replicas = w.replicas
		cl := local(t, c)
		if got := cl.Wire(); !slices.Equal(got, make([]zero.Traffic, w.ranks)) {
			t.Errorf("%+v: before the first step: %v", w, got)
		}
		for step := 1; step <= 2; step++ {
			steps(t, cl, c, step, step)
			for _, between := range []string{"Eval", "Logits", "Full", "StateSHA256"} {
				if err := run(cl, between, ctx, leaves(c, 1)); err != nil {
					t.Fatal(err)
				}
			}
			for r, got := range cl.Wire() {
				if want := cl.Program().Train.Wire(r); got != want {
					t.Errorf("%+v: rank %d sent %+v, the plan says %+v", w, r, got, want)
				}
				if (w.ranks > 1) != (got.Sum() > 0) {
					t.Errorf("%+v: rank %d sent %+v", w, r, got)
				}
			}
		}
	}
}

// A model of one unit trains: its loss is ln V at the start, and the state is the same in every world.
func TestModelOfOneUnit(t *testing.T) {
	first := ""
	eachWorld(t, func(t *testing.T, c zeroshard.Config, cl *zeroshard.Cluster) {
		var losses []float64
		for step := 1; step <= 30; step++ {
			st, err := cl.Step(ctx, leaves(c, 1), optim.Hyper{Step: step, LR: 0.1}) // the same batch, to learn by heart
			if err != nil {
				t.Fatal(err)
			}
			losses = append(losses, st.Loss)
		}
		if math.Abs(losses[0]-math.Log(oddVocab)) > 1e-6 || losses[29] > losses[0]/2 {
			t.Errorf("losses from %v to %v, want ln %d and less than half of it", losses[0], losses[29], oddVocab)
		}
		h := hash(t, cl)
		if first == "" {
			first = h
		}
		if h != first {
			t.Errorf("state %s, in the first world %s", h, first)
		}
	})
}

// Each wrapper is asked for every rank, and what it returns is used.
func TestOptionsWrapEveryRank(t *testing.T) {
	c := oddJob(3, 4)
	c.Replicas = 2
	var mu sync.Mutex
	met := map[string]int{}
	meet := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		met[fmt.Sprintf(format, args...)]++
	}
	var spans [4]atomic.Int64
	cl := local(t, c,
		zeroshard.WithDevice(func(r int, d device.Device) device.Device { meet("device %d", r); return d }),
		zeroshard.WithKernels(func(r int, k kernels.Backend) kernels.Backend { meet("kernels %d", r); return k }),
		zeroshard.WithObservers(func(r int) []memory.Observer {
			meet("observer %d", r)
			return []memory.Observer{spanCounter{&spans[r]}}
		}),
		zeroshard.WithGroup(func(r int, axis shard.Axis, g collectives.Group) collectives.Group {
			meet("%s %d, end %d of %d", axis, r, g.Rank(), g.Size())
			return g
		}))
	want := map[string]int{}
	for r := range 4 {
		for _, s := range []string{"device %d", "kernels %d", "observer %d"} {
			want[fmt.Sprintf(s, r)] = 1
		}
		want[fmt.Sprintf("shard %d, end %d of 2", r, r%2)] = 1
		want[fmt.Sprintf("replicate %d, end %d of 2", r, r/2)] = 1
		want[fmt.Sprintf("world %d, end %d of 4", r, r)] = 1
	}
	if !maps.Equal(met, want) {
		t.Errorf("met  %v\nwant %v", met, want)
	}
	steps(t, cl, c, 1, 1)
	for r := range spans {
		if spans[r].Load() == 0 {
			t.Errorf("rank %d's observer saw nothing", r)
		}
	}
}

type spanCounter struct{ n *atomic.Int64 }

func (spanCounter) Reserve(string, int64) error { return nil }
func (spanCounter) Release(string, int64)       {}
func (c spanCounter) Begin(memory.Span)         { c.n.Add(1) }
func (spanCounter) End(memory.Span)             {}

// full is a device without memory to give.
type fullDevice struct{ device.Device }

func (fullDevice) Alloc(bytes int64) (device.Mem, error) { return nil, device.ErrMemory }

// Where one rank cannot start, none does; the error is that rank's, and nothing stays behind (goleak).
func TestLocalFailsAsOne(t *testing.T) {
	for bad := range 3 {
		c := micro(t)
		c.Stage, c.Ranks = 3, 3
		cl, err := zeroshard.Local(ctx, c, zeroshard.WithDevice(func(r int, d device.Device) device.Device {
			if r == bad {
				return fullDevice{d}
			}
			return d
		}))
		if cl != nil || !errors.Is(err, device.ErrMemory) {
			t.Errorf("rank %d without memory: %v, %v", bad, cl, err)
		}
	}
	dead, cancel := context.WithCancel(ctx)
	cancel()
	if cl, err := zeroshard.Local(dead, micro(t)); cl != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("in an ended context: %v, %v", cl, err)
	}
}
