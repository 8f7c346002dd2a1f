package stagetest

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"zeroshard"
	"zeroshard/collectives"
	"zeroshard/collectives/inproc"
	"zeroshard/device"
	"zeroshard/device/cpu"
	"zeroshard/kernels"
	"zeroshard/memory"
	"zeroshard/models"
	"zeroshard/offload"
	"zeroshard/offload/file"
	"zeroshard/offload/host"
	"zeroshard/prng"
	"zeroshard/shard"
	"zeroshard/zero"
)

// within runs f and fails with the stacks of all goroutines if it takes longer than any machine needs: a hang is a failure, not a
// test that the reader must interrupt.
func within(t *testing.T, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		stacks := make([]byte, 1<<20)
		t.Fatalf("hangs:\n%s", stacks[:runtime.Stack(stacks, true)])
	}
}

// leaks fails at the end of the test if goroutines are left that were not there at the start.
func leaks(t *testing.T) {
	t.Helper()
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
}

// crew is the ranks of a run without the facade: a test sees what each rank returns, and can make ranks differ.
type crew struct {
	configs []zeroshard.Config // by rank
	engines []*zero.Engine
	devices []*cpu.Device
}

// seams is what a test puts between the parts of a rank; nil leaves a part as it is.
type seams struct {
	config  func(rank int, c zeroshard.Config) zeroshard.Config
	device  func(rank int, d device.Device) device.Device
	kernels func(rank int, k kernels.Backend) kernels.Backend
	group   func(rank int, g collectives.Group) collectives.Group
	observe func(rank int) memory.Observer
	tier    func(rank int, t offload.Tier) offload.Tier
}

// newCrew makes the ranks of c. errs has what zero.New said on each.
func newCrew(t *testing.T, c zeroshard.Config, s seams) (w *crew, errs []error) {
	t.Helper()
	w = &crew{}
	for r := range c.Ranks {
		rc := c
		if s.config != nil {
			rc = s.config(r, c)
		}
		w.configs = append(w.configs, rc)
		w.devices = append(w.devices, cpu.New(cpu.Options{Name: fmt.Sprintf("rank %d", r)}))
	}
	w.engines = make([]*zero.Engine, c.Ranks)
	groups := groupsOf(t, c)
	within(t, func() {
		errs = each(c.Ranks, func(r int) error { return w.start(r, groups[r], s) })
	})
	t.Cleanup(func() { w.close(t) })
	return w, errs
}

func (w *crew) start(r int, groups map[shard.Axis]collectives.Group, s seams) error {
	c := w.configs[r]
	p, err := zeroshard.Plan(c)
	if err != nil {
		return err
	}
	var dev device.Device = w.devices[r]
	if s.device != nil {
		dev = s.device(r, dev)
	}
	var k kernels.Backend = reference()
	if s.kernels != nil {
		k = s.kernels(r, k)
	}
	if s.group != nil {
		for axis := range groups {
			groups[axis] = s.group(r, groups[axis])
		}
	}
	var observers []memory.Observer
	if s.observe != nil {
		observers = append(observers, s.observe(r))
	}
	tiers := map[string]offload.Tier{zero.HostTier: host.New(host.Options{Rank: r}), zero.FileTier: file.New(file.Options{Dir: c.Offload.Dir, Rank: r})}
	if s.tier != nil {
		for name, t := range tiers {
			tiers[name] = s.tier(r, t)
		}
	}
	key := prng.New(c.Seed)
	e, err := zero.New(context.Background(), zero.Config{Rank: r, Program: p, Model: c.Model, Optimizer: c.Optimizer, Device: dev,
		Arena: memory.NewArena(dev, observers...), Net: k, Vector: k, Groups: groups, Tiers: tiers, Key: key.Named("dropout"), Clip: c.Clip})
	if err != nil {
		return err
	}
	w.engines[r] = e
	for _, spec := range c.Model.Flats() {
		for _, q := range spec.Params {
			if err := e.Write(q.Name, zero.Master, func(lo int, dst []float32) error {
				c.Model.(models.Initializer).Init(key.Named("init"), q, lo, dst)
				return nil
			}); err != nil {
				return err
			}
		}
	}
	return nil
}

// groupsOf makes every rank's groups. Axes with the same ranks share a group, so that a call on the wrong axis is met too.
func groupsOf(t *testing.T, c zeroshard.Config) []map[shard.Axis]collectives.Group {
	t.Helper()
	replicas := max(c.Replicas, 1)
	m, err := shard.NewMesh(replicas, c.Ranks/replicas)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]map[shard.Axis]collectives.Group, c.Ranks)
	for r := range out {
		out[r] = map[shard.Axis]collectives.Group{}
	}
	for _, axis := range []shard.Axis{shard.World, shard.Shards, shard.Replicate} {
		for r := range out {
			members := m.Ranks(r, axis)
			if members[0] != r {
				continue
			}
			ends, err := inproc.New(len(members), func(int) collectives.Folder { return reference() })
			if err != nil {
				t.Fatal(err)
			}
			for i, member := range members {
				out[member][axis] = ends[i]
				if all := out[member][shard.World]; len(members) == c.Ranks {
					out[member][axis] = all
				}
			}
		}
	}
	return out
}

// each runs f for every rank at the same time and returns what each returned.
func each(ranks int, f func(r int) error) []error {
	errs := make([]error, ranks)
	var wg sync.WaitGroup
	for r := range ranks {
		wg.Go(func() { errs[r] = f(r) })
	}
	wg.Wait()
	return errs
}

// step trains all ranks on the global batch of a step.
func (w *crew) step(t *testing.T, ctx context.Context, step int) (stats []zero.Stats, errs []error) {
	t.Helper()
	stats = make([]zero.Stats, len(w.engines))
	within(t, func() {
		errs = each(len(w.engines), func(r int) (err error) {
			stats[r], err = w.engines[r].Step(ctx, w.micro(r, step), hyper(step))
			return err
		})
	})
	return stats, errs
}

// micro makes the micro-batches of a rank.
func (w *crew) micro(rank, step int) []zero.Batch {
	var out []zero.Batch
	for _, leaf := range w.engines[rank].Program().Train.Leaves(rank) {
		out = append(out, zero.Batch{})
		if leaf >= 0 {
			out[len(out)-1] = batch(w.configs[rank], step, leaf)
		}
	}
	return out
}

// hash is state_sha256, read through the engines.
func (w *crew) hash(t *testing.T) string {
	t.Helper()
	var params []shard.Param
	for _, spec := range w.configs[0].Model.Flats() {
		params = append(params, spec.Params...)
	}
	slices.SortFunc(params, func(a, b shard.Param) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	h := sha256.New()
	within(t, func() {
		for _, p := range params {
			states := len(w.configs[0].Optimizer.States())
			if p.Frozen {
				states = 0
			}
			for state := zero.Master; state < states; state++ {
				values := make([]float32, p.Len())
				errs := each(len(w.engines), func(r int) error {
					if r == 0 {
						return w.engines[r].Read(context.Background(), p.Name, state, values)
					}
					return w.engines[r].Read(context.Background(), p.Name, state, nil)
				})
				if err := errors.Join(errs...); err != nil {
					t.Error(err)
				}
				must(binary.Write(h, binary.LittleEndian, values))
			}
		}
	})
	return hex.EncodeToString(h.Sum(nil))
}

// close ends all ranks and looks for bytes left on their devices. It may be called twice.
func (w *crew) close(t *testing.T) {
	t.Helper()
	within(t, func() {
		for r, d := range w.devices {
			var err error
			if e := w.engines[r]; e != nil {
				err = e.Close()
			}
			if err := errors.Join(err, d.Close()); err != nil {
				t.Errorf("rank %d: close: %v", r, err)
			}
			if n := d.Used(); n != 0 {
				t.Errorf("rank %d: %d bytes are in use after Close", r, n)
			}
		}
	})
}

// mustCrew is newCrew where no error is expected.
func mustCrew(t *testing.T, c zeroshard.Config, s seams) *crew {
	t.Helper()
	w, errs := newCrew(t, c, s)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return w
}

// mustStep is step where no error is expected: all ranks report the same.
func (w *crew) mustStep(t *testing.T, step int) zero.Stats {
	t.Helper()
	stats, errs := w.step(t, context.Background(), step)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for r := range stats {
		if got, want := report(stats[r]), report(stats[0]); got != want {
			t.Fatalf("step %d: rank %d reports %s, rank 0 %s", step, r, got, want)
		}
	}
	return stats[0]
}

// report writes all of a step's stats, so that two can be compared.
func report(s zero.Stats) string {
	skipped := "no"
	if s.Skipped != nil {
		skipped = fmt.Sprintf("%+v", *s.Skipped)
	}
	s.Skipped = nil
	return fmt.Sprintf("%+v skipped: %s", s, skipped)
}
