package stagetest

import (
	"testing"

	"zeroshard"
	"zeroshard/device"
	"zeroshard/models"
	"zeroshard/shard"
	"zeroshard/zero"
)

// flatSize is one flat of a layout in elements, by the rules of the design and not by package shard: a second opinion. Parameters
// start at multiples of 128, a shard is R·⌈n/(S·R)⌉ grains on a mesh of R replicas of S ranks, and a full buffer has S of them.
type flatSize struct {
	numel, full, shard int
	kept, frozen       bool
}

func flatSizes(m models.Model, threshold, replicas, shards int) (out []flatSize) {
	const grain = 128
	for _, spec := range m.Flats() {
		var classes [3]flatSize
		var grains [3]int
		for _, p := range spec.Params {
			class := 0
			switch {
			case p.Frozen:
				class = 2
			case p.Len() < threshold:
				class = 1
			}
			classes[class].numel += p.Len()
			grains[class] += (p.Len() + grain - 1) / grain
		}
		for class := range classes {
			f := &classes[class]
			perRank := (grains[class] + shards*replicas - 1) / (shards * replicas) * replicas
			f.shard, f.full = perRank*grain, perRank*grain*shards
			f.kept, f.frozen = class == 1, class == 2
			if f.numel > 0 {
				out = append(out, *f)
			}
		}
	}
	return out
}

// atRest is the elements of each kind of state at rest on a rank: ZeRO's table, padded.
func atRest(flats []flatSize, stage int) (param, grad, optim int) {
	for _, f := range flats {
		pick := func(sharded bool) int {
			if sharded {
				return f.shard
			}
			return f.full
		}
		param += pick(stage >= 3 && !f.kept)
		if !f.frozen {
			grad += pick(stage >= 2)
			optim += pick(stage >= 1)
		}
	}
	return param, grad, optim
}

// stateBytes is model state at rest: 2+2+12 bytes an element in bf16, 4+4+8 in fp32 (the parameters are their own master weights).
func stateBytes(flats []flatSize, stage int, p zero.Precision) int64 {
	param, grad, optim := atRest(flats, stage)
	perGrad, perOptim := 4, 8
	if p.Compute != device.F32 {
		perGrad, perOptim = 2, 12
	}
	return int64(param)*int64(p.Compute.Size()) + int64(grad)*int64(perGrad) + int64(optim)*int64(perOptim)
}

func sum(flats []flatSize, f func(flatSize) int) (n int) {
	for _, x := range flats {
		n += f(x)
	}
	return n
}

func numel(f flatSize) int { return f.numel }
func full(f flatSize) int  { return f.full }

// sizesOf is the flats of a job.
func sizesOf(c zeroshard.Config) []flatSize {
	replicas := max(c.Replicas, 1)
	return flatSizes(c.Model, c.PersistenceThreshold, replicas, c.Ranks/replicas)
}

// Two opinions on the same arithmetic, one of them by hand.
func TestFlatSizes(t *testing.T) {
	m := &odd{vocab: 31, dim: 7, layers: 3, freeze: true}
	for _, c := range []struct{ replicas, shards, threshold int }{{1, 1, 0}, {1, 2, 0}, {1, 5, 30}, {2, 3, 10}, {4, 1, 8}} {
		l, err := shard.NewLayout(m.Flats(), c.threshold)
		if err != nil {
			t.Fatal(err)
		}
		mesh, err := shard.NewMesh(c.replicas, c.shards)
		if err != nil {
			t.Fatal(err)
		}
		var want []flatSize
		for i := range l.Flats {
			if f := &l.Flats[i]; f.Numel() > 0 {
				want = append(want, flatSize{f.Numel(), l.FullLen(i, mesh), l.ShardLen(i, mesh), f.Class == shard.Kept, f.Class == shard.Frozen})
			}
		}
		got := flatSizes(m, c.threshold, c.replicas, c.shards)
		if len(got) != len(want) {
			t.Fatalf("%+v: %d flats, the layout has %d", c, len(got), len(want))
		}
		for i := range got {
			if got[i] != want[i] {
				t.Errorf("%+v: flat %d is %+v, the layout has %+v", c, i, got[i], want[i])
			}
		}
	}
	byHand := flatSizes(&odd{vocab: 31, dim: 7, layers: 1}, 0, 1, 2)
	if want := (flatSize{numel: 217, full: 256, shard: 128}); byHand[0] != want {
		t.Errorf("31×7 elements on two ranks: %+v, want %+v", byHand[0], want)
	}
	if want := (flatSize{numel: 56, full: 256, shard: 128}); byHand[1] != want {
		t.Errorf("7×7 and 7 elements on two ranks: %+v, want %+v", byHand[1], want)
	}
}
