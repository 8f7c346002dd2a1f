package zeroshard_test

import (
	"fmt"
	"testing"

	"zeroshard"
	"zeroshard/models/gpt"
	"zeroshard/zero"
)

func searched(t testing.TB, preset string, c zeroshard.Config) zeroshard.Config {
	t.Helper()
	cfg, err := gpt.Preset(preset)
	if err != nil {
		t.Fatal(err)
	}
	if c.Model, err = gpt.New(cfg); err != nil {
		t.Fatal(err)
	}
	c.Seq = cfg.Positions
	return c
}

// Every setting that is found fits, by a plan of its own; the list is in the order of predicted cost.
func TestSearchFindsWhatFits(t *testing.T) {
	c := searched(t, "tiny", zeroshard.Config{Ranks: 2, Stage: 0, GlobalBatch: 8, MicroBatch: 2})
	for _, limit := range []int64{4 << 20, 6 << 20, 9 << 20, 16 << 20, 1 << 30} {
		found, _, err := zeroshard.Search(c, limit, 5, zeroshard.DefaultRates)
		if err != nil || len(found) == 0 {
			t.Fatal(limit, found, err)
		}
		for i, f := range found {
			pr, err := zeroshard.Plan(f.Config)
			if err != nil {
				t.Fatal(f.Flags, err)
			}
			if got := pr.Train.Cost().Peak(); got > limit || got != f.Cost.Peak() {
				t.Errorf("%s needs %d, said %d, limit %d", f.Flags, got, f.Cost.Peak(), limit)
			}
			if i > 0 && f.Seconds < found[i-1].Seconds {
				t.Errorf("%s is cheaper than %s before it", f.Flags, found[i-1].Flags)
			}
			if f.Bits != (f.Config.MicroBatch == c.MicroBatch) {
				t.Errorf("%s: bits %t", f.Flags, f.Bits)
			}
		}
	}
	if found, _, err := zeroshard.Search(c, 1000, 5, zeroshard.DefaultRates); err != nil || len(found) != 0 {
		t.Errorf("in 1000 bytes: %v, %v", found, err)
	}
}

// With room for everything the plain setting is the cheapest: nothing sharded, nothing recomputed, nothing offloaded.
func TestSearchPrefersPlain(t *testing.T) {
	c := searched(t, "small", zeroshard.Config{Ranks: 4, Stage: 3, GlobalBatch: 16, MicroBatch: 4})
	found, _, err := zeroshard.Search(c, 1<<50, 1, zeroshard.DefaultRates)
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	if f := found[0].Config; f.Recompute != 0 || f.Offload.Optimizer != "" || f.Stage > 1 {
		t.Errorf("cheapest: %s", found[0].Flags)
	}
}

func BenchmarkSearchTrillion(b *testing.B) {
	c := searched(b, "1t", zeroshard.Config{Ranks: 64, Stage: 3, GlobalBatch: 64, MicroBatch: 1, Precision: zero.BF16})
	for b.Loop() {
		found, _, err := zeroshard.Search(c, 400e9, 5, zeroshard.DefaultRates)
		if err != nil || len(found) == 0 {
			b.Fatal(fmt.Sprint(found), err)
		}
	}
}
