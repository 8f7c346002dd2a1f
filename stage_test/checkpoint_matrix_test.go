package stagetest

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"

	"zeroshard"
	"zeroshard/checkpoint"
	"zeroshard/prng"
	"zeroshard/zero"
)

// A matrix run saves after savedAt steps and goes on for moreSteps.
const (
	savedAt   = 3
	moreSteps = 5
)

// passed is a run that one cell begins and another ends.
func passed(r relay, from, to cell) (result, error) {
	r.store = memoryStore()
	return r.run(leg{from, savedAt}, leg{to, savedAt + moreSteps})
}

// Any to any: what one cell saved another loads, and ends with the state, losses and norms of a run that never stopped. Stage, world, mesh,
// offload, windows, prefetch, recomputation, threads, kept parameters and the way of saving are drawn on both sides, and
// dropout, the optimizer, the leaves and the model (frozen and zero-size parameters, sizes that divide nothing) for both.
func TestCheckpointAnyToAny(t *testing.T) {
	s, dir := seed(t), tierDir(t)
	names := slices.Sorted(maps.Keys(optimizers))
	whole := map[string]result{}
	for i := range soak(60) {
		k := prng.New(s).Named("any to any").Sub(uint64(i))
		leaves := []int{8, 8, 8, 6, 11}[k.Intn(0, 5)]
		dropout := []float32{0, 0, 0.2}[k.Intn(1, 3)]
		name := append([]string{"adamw", "adamw"}, names...)[k.Intn(2, 2+len(names))]
		j, what := job(t, "micro", leaves, 1, 8, dropout), "micro"
		j.Optimizer = optimizers[name]
		if k.Intn(3, 3) == 0 {
			j, what, dropout = oddJob(&odd{vocab: 31, dim: 7, layers: 4, freeze: true}, leaves, optimizers[name]), "odd", 0
		}
		r := relay{job: j, dir: dir, saver: k.Intn(4, 2) == 1}
		key := fmt.Sprintf("%s, %d leaves, dropout %v, %s", what, leaves, dropout, name)
		want, ok := whole[key]
		if !ok {
			want = r.whole(t, savedAt, savedAt+moreSteps)
			whole[key] = want
		}
		from, to := draw(k.Named("from"), leaves), draw(k.Named("to"), leaves)
		got, err := passed(r, from, to)
		if err == nil && got.equal(want) {
			continue
		}
		leastFrom, leastTo := leastPair(r, from, to, want)
		t.Fatalf("ZEROSHARD_SEED=%d, pair %d (%s, saver %t): saved by %v, loaded by %v\ngot  %v (%v)\nwant %v\nleast pair that fails: saved by %v, loaded by %v",
			s, i, key, r.saver, from, to, got, err, want, leastFrom, leastTo)
	}
}

// leastPair shrinks who loads, then who saved.
func leastPair(r relay, from, to cell, want result) (cell, cell) {
	fails := func(from, to cell) bool {
		for _, c := range []cell{from, to} {
			if _, err := zeroshard.Plan(c.config(r.job)); err != nil {
				return false
			}
		}
		got, err := passed(r, from, to)
		refused := errors.Is(err, zero.ErrOptions) || errors.Is(err, zero.ErrStrategy)
		return !refused && (err != nil || !got.equal(want))
	}
	to = shrink(to, func(c cell) bool { return fails(from, c) })
	from = shrink(from, func(c cell) bool { return fails(c, to) })
	return from, to
}

// matrixCells is every stage on 1, 2, 3, 5 and 8 ranks, on the device, and offloaded to the host and to files as far as the stage can.
func matrixCells() (cells []cell) {
	for stage := range 4 {
		for i, ranks := range []int{1, 2, 3, 5, 8} {
			for _, tier := range []string{"", zero.HostTier, zero.FileTier} {
				c := cell{Stage: stage, Ranks: ranks, Replicas: 1, Threads: 1, Prefetch: i % 3, Optim: tier}
				if stage == 3 {
					c.Param = tier
				}
				if tier == "" || stage > 0 {
					cells = append(cells, c)
				}
			}
		}
	}
	return cells
}

// Every pair of stages, worlds and tiers: all under make soak, else those that are drawn. Each cell saves once, and others go on from it.
func TestCheckpointMatrix(t *testing.T) {
	cells, s, dir := matrixCells(), seed(t), tierDir(t)
	all := os.Getenv("ZEROSHARD_SOAK") != ""
	r := relay{job: job(t, "micro", 8, 1, 8, 0.1), dir: dir}
	want := r.whole(t, savedAt, savedAt+moreSteps)
	stores := map[cell]*checkpoint.Store{}
	pair := func(from, to cell) {
		if r.store = stores[from]; r.store == nil {
			r.store = memoryStore()
			if _, err := r.run(leg{from, savedAt}, leg{from, savedAt}); err != nil { // the second loads, and finds nothing left to do
				t.Fatalf("%v: %v", from, err)
			}
			stores[from] = r.store
		}
		got, err := r.run(leg{to, savedAt + moreSteps})
		if err != nil || !got.equal(want) {
			t.Errorf("saved by %v, loaded by %v\ngot  %v (%v)\nwant %v", from, to, got, err, want)
		}
	}
	if all {
		for _, from := range cells {
			for _, to := range cells {
				pair(from, to)
			}
		}
		t.Logf("%d pairs", len(cells)*len(cells))
		return
	}
	for i := range soak(30) {
		k := prng.New(s).Named("matrix").Sub(uint64(i))
		pair(cells[k.Intn(0, len(cells))], cells[k.Intn(1, len(cells))])
		if t.Failed() {
			t.Fatalf("ZEROSHARD_SEED=%d, pair %d", s, i)
		}
	}
}
