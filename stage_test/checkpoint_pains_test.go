package stagetest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"zeroshard"
	"zeroshard/checkpoint"
	"zeroshard/checkpoint/crashfs"
	"zeroshard/checkpoint/safetensors"
	"zeroshard/device"
	"zeroshard/kernels"
	"zeroshard/models"
	"zeroshard/models/gpt"
	"zeroshard/optim"
	"zeroshard/prng"
	"zeroshard/zero"

	loop "zeroshard/train"
)

// What checkpoints of other engines did to their users, and must not happen here. The numbers are those of the reports from the field.
// Elsewhere: 28 (config says tied, tensors differ) and the export's side of 27 in models/gpt/hf; 36 to 39 (a crash at any point) and 53
// (some ranks did not save) in checkpoint; 31, 33, 34 and 35 (memory) in checkpoint_memory_linux_test.go; 45 (files of a killed run) in
// offload_pains_test.go and cmd/zeroshard; 48 and 49 (ids that do not fit) in data and data/prepare.

// equalTo runs legs and demands the result of a run without a break.
func (r *relay) equalTo(t *testing.T, want result, legs ...leg) {
	t.Helper()
	got, err := r.run(legs...)
	if err != nil || !got.equal(want) {
		t.Errorf("%v\ngot  %v (%v)\nwant %v", legs, got, err, want)
	}
}

// 23: a full state could not be loaded where dim 0 does not divide by the world. 24: empty shards broke the load of optimizer state. Here 3×5
// elements, one grain, go from any world to any: most ranks hold nothing.
func TestPain23And24FewerElementsThanRanks(t *testing.T) {
	for name, o := range optimizers {
		r := relay{job: oddJob(&odd{vocab: 3, dim: 5}, 8, o)}
		want := r.whole(t, 2, 4)
		for _, stage := range []int{0, 1, 3} {
			for _, to := range []int{2, 4, 7} {
				for _, from := range []int{1, 8} {
					t.Run(fmt.Sprintf("%s, stage %d, %d to %d ranks", name, stage, from, to), func(t *testing.T) {
						r.store = memoryStore()
						r.equalTo(t, want, leg{cell{Stage: 3, Ranks: from}, 2}, leg{cell{Stage: stage, Ranks: to}, 4})
					})
				}
			}
		}
	}
}

// 27: a tied head was missing after consolidation. 32: consolidation counted elements wrong, off by padding. Here one file holds each
// parameter once, whole, with its shape, whatever world saved it; with the optimizer's state as asked.
func TestPain27And32ConsolidatedIsComplete(t *testing.T) {
	for name, j := range map[string]zeroshard.Config{
		"micro, tied": job(t, "micro", 8, 1, 8, 0), "odd": oddJob(&odd{vocab: 31, dim: 7, layers: 4, freeze: true}, 8, optim.DefaultAdamW()),
	} {
		var first map[string][]float32
		for _, c := range []cell{plain, {Stage: 3, Ranks: 7}, {Stage: 2, Ranks: 4, Replicas: 2}} {
			t.Run(name+", "+c.String(), func(t *testing.T) {
				r := relay{job: j, store: memoryStore()}
				if _, err := r.run(leg{c, 1}, leg{c, 1}); err != nil {
					t.Fatal(err)
				}
				s, err := r.store.Open(1)
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				path := filepath.Join(t.TempDir(), "all.safetensors")
				if err := s.Consolidate(checkpoint.OS{}, path, true); err != nil {
					t.Fatal(err)
				}
				f, err := safetensors.Open(path)
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				got, tensors := map[string][]float32{}, 0
				for _, spec := range j.Model.Flats() {
					for _, p := range spec.Params {
						names := []string{p.Name}
						if !p.Frozen {
							names = append(names, "m/"+p.Name, "v/"+p.Name)
						}
						for _, n := range names {
							x, ok := f.Lookup(n)
							if !ok || int(x.Len()) != p.Len() || !slices.EqualFunc(x.Shape, p.Shape, func(a int64, b int) bool { return int(a) == b }) {
								t.Fatalf("%s: %+v, want shape %v", n, x, p.Shape)
							}
							got[n] = make([]float32, p.Len())
							if err := f.Float32s(x, 0, got[n]); err != nil {
								t.Fatal(err)
							}
							tensors++
						}
					}
				}
				if tensors != len(f.Tensors) {
					t.Errorf("%d tensors, want %d", len(f.Tensors), tensors)
				}
				if first == nil {
					first = got
				}
				for n := range first {
					if !slices.Equal(first[n], got[n]) {
						t.Errorf("%s depends on who saved it", n)
					}
				}
			})
		}
	}
}

// 29: frozen weights were not saved and were random after a resume. Here they are saved, once, and restored over other initial values; a
// damaged one is found.
func TestPain29FrozenWeightsAreSavedAndChecked(t *testing.T) {
	ctx := context.Background()
	m := &odd{vocab: 31, dim: 7, layers: 4, freeze: true}
	r := relay{job: oddJob(m, 6, optim.DefaultAdamW())}
	want := r.whole(t, 2, 3)
	fs := &crashfs.FS{}
	r.store = checkpoint.NewStore(fs, "c")
	if _, err := r.run(leg{cell{Stage: 3, Ranks: 3}, 2}, leg{plain, 2}); err != nil {
		t.Fatal(err)
	}
	r.job.Seed++ // other initial values: what is not restored shows
	r.equalTo(t, want, leg{cell{Stage: 3, Ranks: 4}, 3})

	s, err := r.store.Open(2)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if p, ok := s.Param("layer.2.b"); !ok || !p.Frozen || !slices.Equal(s.Manifest.StatesOf(p), []string{checkpoint.Weights}) {
		t.Errorf("%+v, %v", p, ok)
	}
	for rank := range 3 { // the last bytes of each file are values
		at := fmt.Sprintf("c/step-00000002/rank-%05d.safetensors", rank)
		x, err := fs.Open(at)
		if err != nil {
			t.Fatal(err)
		}
		if err := fs.Flip(at, int(x.Size())*8-5); err != nil {
			t.Fatal(err)
		}
	}
	damaged, err := r.store.Open(2)
	if err == nil {
		defer damaged.Close()
		j := cell{Stage: 3, Ranks: 2}.config(r.job)
		cl, lerr := zeroshard.Local(ctx, j)
		if lerr != nil {
			t.Fatal(lerr)
		}
		defer cl.Close()
		err = cl.Restore(ctx, damaged)
	}
	var bad *checkpoint.CorruptError
	if !errors.As(err, &bad) {
		t.Errorf("restored from damaged files: %v", err)
	}
}

// 30: a checkpoint could not be loaded with another number of ranks. Here the ranks and the mesh grow and shrink at every save of one run.
func TestPain30WorldChangesAtEverySave(t *testing.T) {
	r := relay{job: job(t, "micro", 8, 1, 8, 0), store: memoryStore(), dir: tierDir(t), saver: true}
	legs := []leg{{cell{Stage: 3, Ranks: 2}, 1}, {cell{Stage: 0, Ranks: 5}, 2}, {cell{Stage: 2, Ranks: 8, Replicas: 4}, 3}, {cell{Stage: 3, Ranks: 1, Optim: zero.FileTier}, 4},
		{cell{Stage: 1, Ranks: 7}, 5}, {cell{Stage: 3, Ranks: 4, Replicas: 2, Param: zero.HostTier}, 6}}
	r.equalTo(t, r.whole(t, 5, 6), legs...)
	if steps, err := r.store.Verify(); err != nil || !slices.Equal(steps, []int{1, 2, 3, 4, 5}) {
		t.Errorf("steps %v, %v", steps, err)
	}
}

// poison is arithmetic whose cross-entropy gives a NaN on one rank in some steps.
type poison struct {
	kernels.Backend
	on func() bool
}

func (p *poison) CrossEntropy(s device.Stream, c kernels.CrossEntropy) {
	p.Backend.CrossEntropy(s, c)
	if c.Grad && p.on() {
		c.Logits.Float32s()[0] = float32(math.NaN()) // the kernels of a CPU are done when they return
	}
}

// drawn is data that remembers who was asked for what.
type drawn struct {
	loop.Data
	mu   sync.Mutex
	step int
	seen map[string][]int32 // by step and leaf
}

func (d *drawn) Train(step, leaf int) (zero.Batch, error) {
	b, err := d.Data.Train(step, leaf)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.step = step
	d.seen[fmt.Sprint(step, "/", leaf)] = append(slices.Clone(b.Tokens), b.Targets...)
	return b, err
}

// curve is a run of the loop of train on a real cluster.
type curve struct {
	events []string // step, loss, rate and norm of each
	seen   map[string][]int32
	hash   string
	at     loop.Position
}

const curveSteps = 12

// curveOf trains c from a saved step (nil: from the start) to a step, saving after each. Steps 2 and 3 are skipped: a NaN. The rate rises for eight
// steps, then falls; decay is strong.
func curveOf(t *testing.T, c cell, store *checkpoint.Store, from, to int) (out curve) {
	t.Helper()
	ctx := context.Background()
	j := job(t, "micro", 4, 1, 8, 0.1)
	j.Optimizer = optim.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, Decay: 0.5}
	j = c.config(j)
	d := &drawn{Data: steady{j}, seen: map[string][]int32{}}
	skip := func() bool { d.mu.Lock(); defer d.mu.Unlock(); return d.step == 2 || d.step == 3 }
	cl, err := zeroshard.Local(ctx, j, zeroshard.WithKernels(func(rank int, k kernels.Backend) kernels.Backend {
		if rank > 0 {
			return k
		}
		return &poison{k, skip}
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	s := loop.Settings{Steps: curveSteps, StopAt: to, EvalRounds: 1, EvalLeaves: 3, MaxSkips: 5, Now: time.Now, SaveEvery: 1,
		Rate: optim.Schedule{Kind: optim.Cosine, Base: 0.02, Warmup: 8, Steps: curveSteps}.LR}
	if from > 0 {
		saved, err := store.Open(from)
		if err == nil {
			err = errors.Join(cl.Restore(ctx, saved), saved.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
		m := saved.Manifest
		s.From = loop.Position{Step: m.Step, Skipped: m.Step - m.Updates, Tokens: m.Tokens}
	}
	s.Report = func(e loop.Event) {
		if !e.Validation {
			out.events = append(out.events, fmt.Sprintf("%d: loss %v, rate %v, norm %v, skipped %t, %d tokens", e.Step, e.Loss, e.LR, e.Norm, e.Skipped != nil, e.Tokens))
		}
	}
	s.Save = func(at loop.Position) error {
		err := store.Save(cl.Manifest(checkpoint.Position{Step: at.Step, Updates: at.Step - at.Skipped, Tokens: at.Tokens, Seed: j.Seed}), cl.Sources())
		if errors.Is(err, checkpoint.ErrExists) {
			return nil
		}
		return err
	}
	res, err := loop.Run(ctx, cl, d, s)
	if err == nil {
		out.hash, err = cl.StateSHA256(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	out.seen, out.at = d.seen, res.At
	return out
}

// steady is a job's batches as the loop's data.
type steady struct{ zeroshard.Config }

func (s steady) Train(step, leaf int) (zero.Batch, error) { return batch(s.Config, step, leaf), nil }
func (s steady) Held(leaf int) (zero.Batch, error)        { return batch(s.Config, 0, leaf), nil }

// 40, 41: after a resume the learning rate stood still, or began its warm-up again. 42: the step of the bias correction was lost. 47: samples were drawn in
// another order. Here a run that skipped steps before goes on after any of its steps, in another world, with the same losses,
// rates, norms, counts and samples.
func TestPain40To42And47CurvesGoOn(t *testing.T) {
	store := memoryStore()
	want := curveOf(t, plain, store, 0, curveSteps)
	if want.at.Skipped != 2 || !strings.Contains(want.events[1], "skipped true") {
		t.Fatalf("%+v: steps 2 and 3 are to be skipped:\n%s", want.at, strings.Join(want.events, "\n"))
	}
	for from := 1; from < curveSteps; from++ {
		c := cell{Stage: from % 4, Ranks: 1 + from%4, Replicas: 1, Threads: 1}
		got := curveOf(t, c, store, from, curveSteps)
		if got.hash != want.hash || got.at != want.at || !slices.Equal(got.events, want.events[from:]) {
			t.Errorf("from step %d on %v: %+v\n%s\nwant %+v\n%s", from, c, got.at, strings.Join(got.events, "\n"), want.at, strings.Join(want.events[from:], "\n"))
		}
		if len(got.seen) != 4*(curveSteps-from) {
			t.Errorf("from step %d: %d leaves were asked for", from, len(got.seen))
		}
		for at, b := range got.seen {
			if !slices.Equal(b, want.seen[at]) {
				t.Errorf("from step %d: leaf %s is another", from, at)
			}
		}
	}
}

// 46: a second resume began the data anew. Here a run is interrupted after every single step.
func TestPain46ResumeAfterEveryStep(t *testing.T) {
	store, all := memoryStore(), memoryStore()
	want := curveOf(t, plain, all, 0, curveSteps)
	var events []string
	var last curve
	for step := range curveSteps {
		last = curveOf(t, cell{Stage: (step + 3) % 4, Ranks: 1 + step%3, Replicas: 1, Threads: 1}, store, step, step+1)
		events = append(events, last.events...)
	}
	if last.hash != want.hash || last.at != want.at || !slices.Equal(events, want.events) {
		t.Errorf("interrupted after every step: %+v\n%s\nwant %+v\n%s", last.at, strings.Join(events, "\n"), want.at, strings.Join(want.events, "\n"))
	}
}

// 43: with several groups of parameters the optimizer's state was not restored. Here decay is strong, and the manifest says which do not decay.
func TestPain43GroupsWithAndWithoutDecay(t *testing.T) {
	r := relay{job: job(t, "micro", 8, 1, 8, 0), store: memoryStore()}
	r.job.Optimizer = optim.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, Decay: 3}
	r.equalTo(t, r.whole(t, 3, 6), leg{cell{Stage: 3, Ranks: 5}, 3}, leg{cell{Stage: 1, Ranks: 2, Threshold: 50}, 6})
	saved, err := r.store.Open(3)
	if err != nil {
		t.Fatal(err)
	}
	defer saved.Close()
	m := saved.Manifest
	groups := map[bool]int{}
	for _, spec := range r.job.Model.Flats() {
		for _, p := range spec.Params {
			i := slices.IndexFunc(m.Params, func(q checkpoint.Param) bool { return q.Name == p.Name })
			if i < 0 || m.Params[i].NoDecay != p.NoDecay {
				t.Errorf("%s: no decay %t, the manifest has %+v", p.Name, p.NoDecay, m.Params)
			}
			groups[p.NoDecay]++
		}
	}
	if len(groups) != 2 {
		t.Errorf("groups %v", groups)
	}
}

// 44: one rank's random state was restored on all. Here there is none: dropout is a function of seed, step, leaf and layer, and goes on the same
// in any world. Without dropout the result is another, so the test sees it.
func TestPain44DropoutGoesOn(t *testing.T) {
	r := relay{job: job(t, "micro", 8, 1, 8, 0.3)}
	want := r.whole(t, 3, 6)
	still := relay{job: job(t, "micro", 8, 1, 8, 0)}
	if still.whole(t, 3, 6).hash == want.hash {
		t.Fatal("dropout does nothing")
	}
	for _, to := range []cell{plain, {Stage: 3, Ranks: 8}, {Stage: 2, Ranks: 3, Recompute: 1}, {Stage: 3, Ranks: 4, Replicas: 2}} {
		r.store = memoryStore()
		r.equalTo(t, want, leg{cell{Stage: 3, Ranks: 4}, 3}, leg{to, 6})
	}
}

// A step of another model or optimizer is refused with all faults at once, and the cluster trains on as if it had not been asked.
func TestRestoreRefusesAnotherModel(t *testing.T) {
	ctx := context.Background()
	r := relay{job: job(t, "micro", 4, 1, 8, 0), store: memoryStore()}
	if _, err := r.run(leg{cell{Stage: 3, Ranks: 2}, 1}, leg{plain, 1}); err != nil {
		t.Fatal(err)
	}
	s, err := r.store.Open(1)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	cfg := r.job.Model.(*gpt.Model).Config()
	cfg.Vocab--
	wider, err := gpt.New(cfg)
	must(err)
	for name, c := range map[string]struct {
		model models.Model
		optim optim.Optimizer
		says  string
	}{
		"another vocabulary": {wider, optim.DefaultAdamW(), `parameter "wte.weight" has shape [97 24] in the checkpoint, [96 24] in the model`},
		"another optimizer":  {r.job.Model, optim.SGD{Momentum: 0.9}, "the checkpoint has optimizer state [m v]"},
		"another family":     {&odd{vocab: 31, dim: 7, layers: 1}, optim.DefaultAdamW(), `parameter "layer.0.b" is not in the checkpoint`},
	} {
		t.Run(name, func(t *testing.T) {
			j := r.job
			j.Model, j.Optimizer = c.model, c.optim
			cl, err := zeroshard.Local(ctx, cell{Stage: 3, Ranks: 2}.config(j))
			if err != nil {
				t.Fatal(err)
			}
			defer cl.Close()
			before, err := cl.StateSHA256(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if err := cl.Restore(ctx, s); !errors.Is(err, checkpoint.ErrMismatch) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v", err)
			}
			if after, err := cl.StateSHA256(ctx); err != nil || after != before {
				t.Errorf("the state is another after a refusal (%v)", err)
			}
		})
	}
}

// In a world of many ranks the plan's figures of a save are a bound.
func TestSaveBytesOfManyRanks(t *testing.T) {
	for _, c := range []cell{{Stage: 0, Ranks: 1040}, {Stage: 3, Ranks: 1040, Param: zero.FileTier}, {Stage: 2, Ranks: 2048, Replicas: 32, Optim: zero.HostTier}} {
		j := c.config(job(t, "micro", 2048, 1, 8, 0))
		pr, err := zeroshard.Plan(j)
		if err != nil {
			t.Fatal(err)
		}
		most, copied := 0, 0
		for rank := range c.Ranks {
			n, here := 0, 0
			for _, h := range pr.Train.Share(rank) {
				if n += h.Len; h.Tier != zero.FileTier {
					here += h.Len
				}
			}
			most, copied = max(most, n), max(copied, here)
		}
		grains := 3 * len(pr.Layout.Flats) // a rank's part of each state of a flat, rounded up
		all, memory := pr.SaveBytes()
		if all < int64(4*most) || memory < int64(4*copied) || all > int64(4*(most+128*grains)) {
			t.Errorf("%v: a rank saves up to %d bytes, %d of them copied; the plan says %d and %d", c, 4*most, 4*copied, all, memory)
		}
	}
}

// Each rank saves its share and no more: shares are disjoint, cover every element of every state, and no rank writes more than another but for
// a grain of each flat.
func TestSharesAreEven(t *testing.T) {
	s := seed(t)
	for i := range soak(40) {
		k := prng.New(s).Named("shares").Sub(uint64(i))
		j := job(t, "micro", 8, 1, 8, 0)
		if i%2 == 1 {
			j = oddJob(&odd{vocab: 31, dim: 7, layers: 4, freeze: true}, 8, optim.DefaultAdamW())
		}
		c := draw(k, 8)
		pr, err := zeroshard.Plan(c.config(j))
		if err != nil {
			t.Fatal(err)
		}
		seen, total := map[string]int{}, 0
		least, most := math.MaxInt, 0
		for rank := range c.Ranks {
			n := 0
			for _, h := range pr.Train.Share(rank) {
				for e := h.From; e < h.From+h.Len; e++ {
					seen[fmt.Sprint(h.Param, "/", h.State, "/", e)]++
				}
				n += h.Len
			}
			total, least, most = total+n, min(least, n), max(most, n)
		}
		want := 0
		for _, spec := range j.Model.Flats() {
			for _, p := range spec.Params {
				if p.Frozen {
					want += p.Len()
				} else {
					want += 3 * p.Len()
				}
			}
		}
		if total != want || len(seen) != want {
			t.Fatalf("ZEROSHARD_SEED=%d, cell %d, %v: shares are %d elements, %d different ones, want %d", s, i, c, total, len(seen), want)
		}
		all, copied := pr.SaveBytes()
		if int64(4*most) != all || copied > all {
			t.Errorf("ZEROSHARD_SEED=%d, cell %d, %v: a rank saves %d bytes, the plan says %d at most, and %d of memory", s, i, c, 4*most, all, copied)
		}
	}
}
