package stagetest

import (
	"context"
	"slices"
	"testing"

	"zeroshard"
	"zeroshard/memory"
	"zeroshard/models"
	"zeroshard/optim"
	"zeroshard/prng"
	"zeroshard/shard"
	"zeroshard/zero"
)

// Reports about sizes, worlds and memory. Package shard has those that are arithmetic alone; here they train.

// vectors is a model of nothing but parameters of given sizes: each token's loss is the square of its distance from a sum of them.
// It has as few elements as one likes.
type vectors struct{ sizes []int }

func (m *vectors) vocabulary() int { return 3 }

func (m *vectors) Flats() []shard.FlatSpec {
	spec := shard.FlatSpec{Name: "all"}
	for i, n := range m.sizes {
		spec.Params = append(spec.Params, shard.Param{Name: "w" + string(rune('a'+i)), Shape: []int{n}})
	}
	return []shard.FlatSpec{spec}
}

func (m *vectors) Init(key prng.Key, p shard.Param, lo int, dst []float32) {
	key.Named(p.Name).FillNormal(dst, uint64(lo))
}

func (m *vectors) Units() []models.Unit { return []models.Unit{&squares{m}} }

// squares: loss of a token = Σ w²/2 over every element of every parameter, times the token's number + 1. Its gradient is w.
type squares struct{ *vectors }

func (*squares) Name() string                        { return "squares" }
func (*squares) Reads() (forward, backward []string) { return []string{"all"}, nil }
func (*squares) Sizes(s models.Shape, m models.Mode) models.Sizes {
	if m == models.Logits {
		return models.Sizes{Out: 3 * s.Batch}
	}
	return models.Sizes{}
}

func (u *squares) Forward(c *models.Call) error {
	loss, tokens := c.Loss.Float64s(), c.Tokens.Int32s()
	if c.Mode == models.Logits {
		clear(c.Out.Float32s())
		return nil
	}
	var weight float32
	for i, target := range c.Targets.Int32s() {
		if target >= 0 {
			weight += float32(tokens[i] + 1)
			loss[1]++
		}
	}
	for k := range c.P {
		w := c.P[k].Float32s()
		for i := range w {
			loss[0] += float64(weight) * float64(w[i]) * float64(w[i]) / 2
		}
		if c.Mode == models.Train {
			for i, g := 0, c.G[k].Float32s(); i < len(w); i++ {
				if !c.Add {
					g[i] = 0
				}
				g[i] += float32(weight * w[i])
			}
		}
	}
	return nil
}

func (*squares) Backward(*models.Call) error { panic("the last unit has no backward") }

// Mixed precision's scaler crashed on a rank that owns no elements. Here such ranks train, and skip a step when another rank meets a NaN.
func TestPain16RankWithoutElements(t *testing.T) {
	j := oddJob(nil, 5, optim.DefaultAdamW())
	j.Model = &vectors{[]int{130}} // two grains: ranks 2 to 4 own nothing
	againstOracle(t, j, grid(5))
	for stage := range 4 {
		nanAtEveryOp(t, cell{Stage: stage, Ranks: 5}.config(j), 0)
	}
}

// More ranks than elements: 32 elements on 2048 ranks were an error when the engine started. Here 40 ranks train 32 elements to the bits
// of one, and 2048 ranks have a plan.
func TestPain19MoreRanksThanElements(t *testing.T) {
	j := oddJob(nil, 40, optim.DefaultAdamW())
	j.Model = &vectors{[]int{32}}
	var cells []cell
	for stage := range 4 {
		cells = append(cells, cell{Stage: stage, Ranks: 40})
	}
	againstOracle(t, j, append(cells, cell{Stage: 3, Ranks: 1}))
	for _, replicas := range []int{1, 16, 128} {
		big := cell{Stage: 3, Ranks: 2048, Replicas: replicas}.config(j)
		big.GlobalBatch = 2048
		pr, err := zeroshard.Plan(big)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := pr.Cost().ModelState, stateBytes(sizesOf(big), 3, zero.FP32); got != want {
			t.Errorf("%d replicas: %d bytes of model state, want %d", replicas, got, want)
		}
	}
}

// A trailing trainable parameter without elements was a KeyError at stages 1 and 2.
func TestPain20ZeroSizeParameters(t *testing.T) {
	for _, sizes := range [][]int{{300, 0}, {0, 300}, {5, 0, 5}, {0, 0, 7}} {
		j := oddJob(nil, 4, optim.DefaultAdamW())
		j.Model = &vectors{sizes}
		againstOracle(t, j, grid(1, 2, 3, 4))
	}
	againstOracle(t, oddJob(&odd{vocab: 11, dim: 3, layers: 1}, 4, optim.SGD{Momentum: 0.5}), grid(1, 2, 3)) // a flat of nothing else
}

// Code assumed that padding lies on the last rank alone. 266240 elements on 768 ranks: the ranks at the end own nothing, one owns a part.
// The same on few ranks trains.
func TestPain21PaddingSpansRanks(t *testing.T) {
	big := cell{Stage: 3, Ranks: 768}.config(oddJob(nil, 768, nil))
	big.Model = &vectors{[]int{266240}}
	pr, err := zeroshard.Plan(big)
	if err != nil {
		t.Fatal(err)
	}
	empty, total := 0, 0
	for r := range 768 {
		n := pr.Layout.Shard(0, r, pr.Train.Mesh).Len()
		if total += n; n == 0 {
			empty++
		}
	}
	if empty != 768-694 || total != 266240 { // 2080 grains by 3
		t.Errorf("%d ranks own nothing, %d elements are owned", empty, total)
	}
	small := oddJob(nil, 5, optim.DefaultAdamW())
	small.Model = &vectors{[]int{6 * 128}} // 6 grains by 2: ranks 3 and 4 own nothing
	againstOracle(t, small, grid(5))
}

// Stage 3 broke where sizes did not divide by the world: prime sizes on prime worlds.
func TestPain22PrimeSizesAndWorlds(t *testing.T) {
	j := oddJob(nil, 7, optim.DefaultAdamW())
	j.Model = &vectors{[]int{2, 3, 127, 131, 1009}}
	againstOracle(t, j, grid(2, 3, 5, 7))
	againstOracle(t, oddJob(&odd{vocab: 127, dim: 11, layers: 2}, 7, optim.DefaultAdamW()), grid(2, 3, 5, 7))
}

// A vocabulary of 32001 was refused on 8 ranks.
func TestPain25OddVocabulary(t *testing.T) {
	j := oddJob(&odd{vocab: 32001, dim: 3, layers: 1}, 8, optim.DefaultAdamW())
	againstOracle(t, j, []cell{{Stage: 0, Ranks: 8}, {Stage: 3, Ranks: 8}, {Stage: 3, Ranks: 8, Replicas: 2}})
}

// Initial values came from the rank's seed, so replicas differed. Here they are the same on every layout, and replicas are equal bit for
// bit, at the start and after steps.
func TestPain26InitDoesNotKnowTheLayout(t *testing.T) {
	ctx := context.Background()
	first := ""
	for _, c := range append(grid(1, 2, 3, 5), cell{Stage: 3, Ranks: 4, Replicas: 2}, cell{Stage: 3, Ranks: 8, Replicas: 4, Threshold: 100},
		cell{Stage: 1, Ranks: 4, Replicas: 4}, cell{Stage: 0, Ranks: 4, Replicas: 2}) {
		cl, err := zeroshard.Local(ctx, c.config(job(t, "micro", 8, 1, 4, 0)))
		if err != nil {
			t.Fatal(err)
		}
		hash, err := cl.StateSHA256(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if first == "" {
			first = hash
		}
		if hash != first {
			t.Errorf("%v: initial state %.12s, on one rank %.12s", c, hash, first)
		}
		replicasEqual(t, cl, c)
		for step := 1; step <= 2; step++ {
			if _, err := cl.Step(ctx, func(leaf int) (zero.Batch, error) {
				return batch(c.config(job(t, "micro", 8, 1, 4, 0)), step, leaf), nil
			}, hyper(step)); err != nil {
				t.Fatal(err)
			}
		}
		replicasEqual(t, cl, c)
		if err := cl.Close(); err != nil {
			t.Error(err)
		}
	}
}

// replicasEqual compares what rests of each parameter on a rank with the same shard's ranks on other replicas; and, where values rest
// whole, with every rank.
func replicasEqual(t *testing.T, cl *zeroshard.Cluster, c cell) {
	t.Helper()
	shards := c.Ranks / max(c.Replicas, 1)
	for _, name := range cl.Params() {
		for r := range c.Ranks {
			other := r % shards
			if c.Stage < 3 {
				other = 0
			}
			mine, from, err := cl.Piece(r, name)
			if err != nil {
				t.Fatal(err)
			}
			theirs, at, err := cl.Piece(other, name)
			if err != nil {
				t.Fatal(err)
			}
			if (mine == nil) != (theirs == nil) || from != at {
				t.Errorf("%v: %s: ranks %d and %d hold other parts", c, name, r, other)
			} else if mine != nil && !slices.Equal(mine.Data().([]float32), theirs.Data().([]float32)) {
				t.Errorf("%v: %s differs on ranks %d and %d", c, name, r, other)
			}
		}
	}
}

// Weights stayed gathered after the loop, an evaluation or a failure. Here a rank is back at what rests after each of them, and at nothing
// after Close.
func TestPain55BackAtRest(t *testing.T) {
	ctx := context.Background()
	for _, c := range append(grid(1, 2, 3), cell{Stage: 3, Ranks: 4, Replicas: 2, KeepLast: true, Prefetch: 2}) {
		j := c.config(job(t, "micro", 8, 1, 4, 0))
		cl, err := zeroshard.Local(ctx, j)
		if err != nil {
			t.Fatal(err)
		}
		cost := cl.Program().Cost()
		rest := cost.ModelState + cost.Scratch + cost.Workspace
		after := func(what string) {
			t.Helper()
			for _, m := range cl.Memory() {
				if m.Live != rest {
					t.Errorf("%v: rank %d holds %d bytes after %s, %d rest", c, m.Rank, m.Live, what, rest)
				}
			}
		}
		leaf := func(leaf int) (zero.Batch, error) { return batch(j, 1, leaf), nil }
		after("the start")
		if _, err := cl.Step(ctx, leaf, hyper(1)); err != nil {
			t.Fatal(err)
		}
		after("a step")
		if _, err := cl.Eval(ctx, leaf); err != nil {
			t.Fatal(err)
		}
		after("an evaluation")
		if _, err := cl.Logits(ctx, []int32{1, 2}); err != nil {
			t.Fatal(err)
		}
		after("logits")
		if _, err := cl.Step(ctx, func(leaf int) (zero.Batch, error) {
			b := batch(j, 1, leaf)
			for i := range b.Targets {
				b.Targets[i] = -1
			}
			return b, nil
		}, hyper(2)); err != nil {
			t.Fatal(err)
		}
		after("a skipped step")
		stopped, cancel := context.WithCancel(ctx)
		if _, err := cl.Step(stopped, func(leaf int) (zero.Batch, error) {
			cancel() // once the step has begun
			return batch(j, 3, leaf), nil
		}, hyper(3)); err == nil {
			t.Errorf("%v: a cancelled step succeeds", c)
		}
		after("a failed step")
		if err := cl.Close(); err != nil {
			t.Error(err)
		}
	}
}

// most keeps the largest number of bytes of each kind that were live at once, and what is live.
type most struct {
	witness
	kind memory.ByKind
}

func (o *most) Begin(s memory.Span) {
	o.witness.Begin(s)
	o.kind[s.Kind] = max(o.kind[s.Kind], o.live[s.Kind])
}

// Released weights stayed alive behind saved activations. Here gathered weights are never more than those of the units at work, however
// deep the model; activations of one micro-batch are gone before the next; and recompute makes them fall.
func TestPain56MemoryFalls(t *testing.T) {
	peaks := func(layers, leaves int, c cell) memory.ByKind {
		t.Helper()
		j := c.config(oddJob(&odd{vocab: 31, dim: 37, layers: layers}, leaves, optim.DefaultAdamW()))
		observers := make([]*most, c.Ranks)
		if _, err := train(j, zeroshard.WithObservers(func(r int) []memory.Observer {
			observers[r] = &most{}
			return []memory.Observer{observers[r]}
		})); err != nil {
			t.Fatal(err)
		}
		for r := range observers {
			if observers[r].kind != observers[0].kind {
				t.Errorf("%v: ranks 0 and %d hold %v and %v", c, r, observers[0].kind, observers[r].kind)
			}
		}
		return observers[0].kind
	}
	for prefetch := range 3 {
		c := cell{Stage: 3, Ranks: 2, Prefetch: prefetch}
		few, many := peaks(4, 2, c)[memory.Gathered], peaks(12, 2, c)[memory.Gathered]
		if few != many || few == 0 {
			t.Errorf("prefetch %d: %d bytes gathered at most with 4 layers, %d with 12", prefetch, few, many)
		}
	}
	c := cell{Stage: 3, Ranks: 2}
	one, eight := peaks(6, 2, c), peaks(6, 16, c)
	if one[memory.Activation] != eight[memory.Activation] {
		t.Errorf("%d bytes of activations with one micro-batch a rank, %d with eight", one[memory.Activation], eight[memory.Activation])
	}
	c.Recompute = 1
	if all := peaks(6, 2, c); all[memory.Activation] >= one[memory.Activation] {
		t.Errorf("%d bytes of activations saved, %d recomputed", one[memory.Activation], all[memory.Activation])
	}
}

// Two forwards a step, one without gradients, made the counts of gathered weights negative. Here evaluations and logits between steps, any
// number of them, change neither memory nor bits.
func TestPain57ForwardsBetweenSteps(t *testing.T) {
	ctx := context.Background()
	for _, c := range append(grid(1, 2, 3), cell{Stage: 3, Ranks: 2, Prefetch: 2, KeepLast: true}) {
		j := c.config(job(t, "micro", 6, 1, 16, 0.1)) // with dropout: evaluations have none
		want, err := train(j)
		if err != nil {
			t.Fatal(err)
		}
		cl, err := zeroshard.Local(ctx, j)
		if err != nil {
			t.Fatal(err)
		}
		leaf := func(step int) func(int) (zero.Batch, error) {
			return func(leaf int) (zero.Batch, error) { return batch(j, step, leaf), nil }
		}
		forwards := func(n int) {
			for range n {
				a, err := cl.Eval(ctx, leaf(0))
				if err != nil {
					t.Fatal(err)
				}
				if _, err := cl.Logits(ctx, []int32{1, 2, 3}); err != nil {
					t.Fatal(err)
				}
				if b, err := cl.Eval(ctx, leaf(0)); err != nil || a != b {
					t.Errorf("%v: two evaluations give %v and %v (%v)", c, a, b, err)
				}
			}
		}
		for step := 1; step <= steps; step++ {
			forwards(step)
			if _, err := cl.Step(ctx, leaf(step), hyper(step)); err != nil {
				t.Fatal(err)
			}
		}
		forwards(1)
		if hash, err := cl.StateSHA256(ctx); err != nil || hash != want.hash {
			t.Errorf("%v: state %.12s (%v), without forwards between steps %.12s", c, hash, err, want.hash)
		}
		for _, m := range cl.Memory() {
			if m.Used != m.Planned {
				t.Errorf("%v: rank %d used %d bytes, planned %d", c, m.Rank, m.Used, m.Planned)
			}
		}
		if err := cl.Close(); err != nil {
			t.Error(err)
		}
	}
}
