package zero_test

import (
	"fmt"
	"testing"

	"zeroshard/shard"
	"zeroshard/zero"
)

// A ratio leaves flats of that share in the tier, in the order of the layout, at least one; and the formula agrees with the plan about what
// rests where.
func TestOffloadRatio(t *testing.T) {
	m := newPaper(3, 24) // root of 512 elements on each of two ranks, then three layers of 384
	l, err := shard.NewLayout(m.Flats(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		ratio float64
		flats int
	}{{0, 4}, {1e-9, 1}, {0.3, 1}, {0.5, 1}, {0.6, 2}, {0.79, 3}, {0.999, 3}, {1, 4}} {
		for _, ranks := range []int{1, 2} {
			for _, param := range []string{"", zero.FileTier} {
				t.Run(fmt.Sprintf("%v, %d ranks, parameters on %q", c.ratio, ranks, param), func(t *testing.T) {
					s := zero.Stages[3].Offload(zero.HostTier, param).Partly(c.ratio)
					o := zero.Options{Leaves: ranks, Shape: twoLeaves, States: []string{"m", "v"}}
					p := compileRow(t, m, s, 1, ranks, o)
					var onHost []string
					for i := range p.Bufs {
						if b := &p.Bufs[i]; b.Tier == zero.HostTier && b.State == "m" {
							onHost = append(onHost, b.Name)
						}
					}
					if fmt.Sprint(onHost) != fmt.Sprint([]string{"root m", "h.0 m", "h.1 m", "h.2 m"}[:c.flats]) {
						t.Errorf("on the host: %v, want %d flats", onHost, c.flats)
					}
					mesh, err := shard.NewMesh(1, ranks)
					if err != nil {
						t.Fatal(err)
					}
					cost := p.Cost()
					guess, _ := zero.Estimate(l, m, s, mesh, o)
					if guess.ModelState != cost.ModelState || guess.Host.Holds != cost.Host.Holds || guess.Disk.Holds != cost.Disk.Holds {
						t.Errorf("the formula says %d, %v, %v; the plan %d, %v, %v", guess.ModelState, guess.Host, guess.Disk, cost.ModelState, cost.Host, cost.Disk)
					}
				})
			}
		}
	}
}
