package zero_test

import (
	"fmt"
	"strings"
	"testing"

	"zeroshard/internal/golden"
	"zeroshard/models"
	"zeroshard/zero"
)

var twoLeaves = models.Shape{Batch: 1, Seq: 4}

// The printed plan is the specification of the schedule: a change of scheduling is a readable diff here.
func TestPlanText(t *testing.T) {
	adam := []string{"m", "v"}
	for _, c := range []struct {
		name                    string
		stage, replicas, shards int
		o                       zero.Options
	}{
		{"stage0", 0, 1, 2, zero.Options{Leaves: 4}},
		{"stage0-window1", 0, 1, 2, zero.Options{Leaves: 4, Window: 1}},
		{"stage1", 1, 1, 2, zero.Options{Leaves: 2}},
		{"stage2", 2, 1, 2, zero.Options{Leaves: 4}},
		{"stage3", 3, 1, 2, zero.Options{Leaves: 2}},
		{"stage3-prefetch1", 3, 1, 2, zero.Options{Leaves: 2, Prefetch: 1}},
		{"stage3-prefetch2", 3, 1, 2, zero.Options{Leaves: 2, Prefetch: 2}},
		{"stage3-recompute", 3, 1, 2, zero.Options{Leaves: 2, Prefetch: 1, Recompute: 1}},
		{"stage3-keep-last", 3, 1, 2, zero.Options{Leaves: 2, KeepLast: true}},
		{"stage3-accumulate", 3, 1, 2, zero.Options{Leaves: 3}},
		{"stage3-hybrid", 3, 2, 2, zero.Options{Leaves: 4, Prefetch: 1}},
		{"stage3-bf16", 3, 1, 2, zero.Options{Leaves: 2, Precision: zero.BF16}},
		{"stage1-bf16", 1, 1, 2, zero.Options{Leaves: 2, Precision: zero.BF16}},
		{"one-rank", 3, 1, 1, zero.Options{Leaves: 2}},
		{"stage1-optimizer-on-host", 1, 1, 2, zero.Options{Leaves: 2, Prefetch: 1}},
		{"stage3-all-on-file", 3, 1, 2, zero.Options{Leaves: 4, Prefetch: 1, SubGroup: 256}},
		{"stage3-half-on-host", 3, 1, 2, zero.Options{Leaves: 2, Prefetch: 1}},
		{"one-rank-on-file", 3, 1, 1, zero.Options{Leaves: 1}},
		{"eval", 3, 1, 2, zero.Options{Mode: models.Eval, Leaves: 1, Prefetch: 1}},
		{"logits", 3, 1, 2, zero.Options{Mode: models.Logits, Leaves: 1}},
		{"decode", 3, 1, 2, zero.Options{Mode: models.Decode, Leaves: 1, Prefetch: 1, Inference: true, Shape: models.Shape{Batch: 2, Seq: 1, Room: 4}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.o.States = adam; c.o.Shape == (models.Shape{}) {
				c.o.Shape = twoLeaves
			}
			s := zero.Stages[c.stage]
			switch {
			case strings.HasSuffix(c.name, "on-host"):
				s = s.Offload(zero.HostTier, "")
				if strings.Contains(c.name, "half") {
					s = s.Partly(0.5)
				}
			case strings.HasSuffix(c.name, "on-file"):
				s = s.Offload(zero.FileTier, zero.FileTier)
			}
			p := compileRow(t, newPaper(2, 24), s, c.replicas, c.shards, c.o)
			if err := p.Check(); err != nil {
				t.Fatal(err)
			}
			golden.Check(t, fmt.Sprintf("testdata/plan/%s.txt", c.name), p.Text()+"\n"+p.Buffers())
		})
	}
}
