package stagetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"zeroshard"
	"zeroshard/offload"
	"zeroshard/offload/file"
	"zeroshard/offload/tiertest"
	"zeroshard/shard"
	"zeroshard/zero"
)

// says demands that an error names things.
func says(t *testing.T, err error, things ...string) {
	t.Helper()
	for _, thing := range things {
		if err == nil || !strings.Contains(err.Error(), thing) {
			t.Errorf("the error does not say %q:\n%v", thing, err)
		}
	}
}

// tierOps are a plan's fetches and evicts, in the order in which a rank with one kind of tier makes them.
func tierOps(p *zero.Plan) (ops []int) {
	for i := range p.Ops {
		if v := p.Ops[i].Verb; v == zero.Fetch || v == zero.Evict {
			ops = append(ops, i)
		}
	}
	return ops
}

// An I/O error at every fetch and evict, on one rank: all ranks return and say which rank, flat, state and tier, no step comes of it, and
// nothing is left.
func TestOffloadEIOAtEveryTierOp(t *testing.T) {
	for _, c := range []struct {
		leaves, faulty int
		cell
	}{
		{3, 1, cell{Stage: 3, Ranks: 2, Prefetch: 1, Optim: zero.HostTier, Param: zero.HostTier}},
		{2, 0, cell{Stage: 3, Ranks: 2, Optim: zero.FileTier, Param: zero.FileTier}},
		{4, 2, cell{Stage: 2, Ranks: 4, Replicas: 2, Optim: zero.HostTier}},
		{2, 1, cell{Stage: 1, Ranks: 2, Optim: zero.FileTier}},
		{2, 0, cell{Stage: 3, Ranks: 1, Optim: zero.HostTier, Ratio: 0.5}},
	} {
		t.Run(c.String(), func(t *testing.T) {
			j := offloaded(t, c.cell, job(t, "micro", c.leaves, 1, 4, 0))
			j.Offload.SubGroup = 1 << 20
			pr, err := zeroshard.Plan(j)
			if err != nil {
				t.Fatal(err)
			}
			ops := tierOps(pr.Train)
			if len(ops) < 6 {
				t.Fatalf("only %d fetches and evicts", len(ops))
			}
			for n, op := range ops {
				if testing.Short() && n%7 != 0 {
					continue
				}
				if !t.Run(pr.Train.Line(op), func(t *testing.T) { eioAt(t, j, c.faulty, n, pr.Train, op) }) {
					return
				}
			}
		})
	}
}

// eioAt fails the n-th call of a tier on a rank, which is op.
func eioAt(t *testing.T, j zeroshard.Config, faulty, n int, p *zero.Plan, op int) {
	leaks(t)
	var calls atomic.Int64
	calls.Store(-1 << 40) // initial values
	w := mustCrew(t, j, seams{tier: func(r int, inner offload.Tier) offload.Tier {
		if r != faulty {
			return inner
		}
		return tiertest.Wrap(inner, func(verb string, k offload.Key) error {
			if calls.Add(1) == int64(n)+1 {
				return &fs.PathError{Op: verb, Path: inner.Name() + " tier", Err: syscall.EIO}
			}
			return nil
		})
	}})
	calls.Store(0)
	_, errs := w.step(t, context.Background(), faultStep)
	line := p.Line(op)
	var at *zero.OpError
	if own := errs[faulty]; !errors.As(own, &at) || at.Rank != faulty || at.Step != faultStep || at.Line != op || !errors.Is(own, syscall.EIO) {
		t.Fatalf("rank %d returned %v", faulty, own)
	}
	for r, err := range errs {
		if err == nil && r != faulty && !needs(p, op, r, faulty) {
			continue
		}
		says(t, err, fmt.Sprintf("rank %d, step %d, plan line %s: ", faulty, faultStep, line), " tier: input/output error")
	}
	_, again := w.step(t, context.Background(), faultStep+1)
	for r, err := range again {
		if err == nil || errs[r] != nil && err.Error() != errs[r].Error() {
			t.Errorf("rank %d returned %v, and then %v", r, errs[r], err)
		}
	}
}

// needs says that rank r waits in a collective which the faulty one misses: the norm is of all ranks, what comes behind it of a replica.
func needs(p *zero.Plan, op, r, faulty int) bool {
	return slices.ContainsFunc(missed(p, op), func(i int) bool {
		return p.Ops[i].Verb == zero.Norm || p.Mesh.Coord(r, shard.Replicate) == p.Mesh.Coord(faulty, shard.Replicate)
	})
}

// files of one rank's tier, by the state that they hold.
type tierFiles struct{ tier *file.Tier }

func (f *tierFiles) wrap(rank int) func(int, offload.Tier) offload.Tier {
	return func(r int, t offload.Tier) offload.Tier {
		if x, ok := t.(*file.Tier); ok && r == rank {
			f.tier = x
		}
		return t
	}
}

func (f *tierFiles) path(t *testing.T, state string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(f.tier.Path(), "??-"+strings.ReplaceAll(state, " ", "%20")+".tier"))
	if err != nil || len(found) != 1 {
		t.Fatalf("files of %q: %v, %v", state, found, err)
	}
	return found[0]
}

// damage is what happens to a file behind the engine's back.
type damage struct {
	name string
	do   func(f *os.File) error
	is   error
	flat string // where it is noticed first
}

var damages = []damage{
	{"a bit flips at the start", flip(func(size int64) int64 { return 5 }), offload.ErrCorrupt, "root"},
	{"a bit flips at the end", flip(func(size int64) int64 { return size - 4096 }), offload.ErrCorrupt, "h.1"},
	{"the file is cut off", func(f *os.File) error { return f.Truncate(0) }, io.ErrUnexpectedEOF, "root"},
}

func flip(at func(size int64) int64) func(f *os.File) error {
	return func(f *os.File) error {
		info, err := f.Stat()
		if err != nil {
			return err
		}
		var b [1]byte
		if _, err := f.ReadAt(b[:], at(info.Size())); err != nil {
			return err
		}
		b[0] ^= 1 << 6
		if _, err := f.WriteAt(b[:], at(info.Size())); err != nil {
			return err
		}
		return f.Sync()
	}
}

// Damage to a rank's file between steps: the next step fails and says which rank, flat, state and file; where the damaged bytes are
// written again before anyone reads them, the step has the bits of a run without damage. Never a wrong step.
func TestOffloadDamagedFile(t *testing.T) {
	const faulty = 1
	c := cell{Stage: 3, Ranks: 2, Prefetch: 1, Optim: zero.FileTier, Param: zero.FileTier}
	j0 := job(t, "micro", 8, 1, 4, 0)
	clean := mustCrew(t, offloaded(t, c, j0), seams{})
	clean.mustStep(t, 1)
	clean.mustStep(t, 2)
	want := clean.hash(t)
	for _, state := range []string{"parameter", "m", "v", "gradient at rest", "carry 1"} {
		for _, d := range damages {
			t.Run(state+", "+d.name, func(t *testing.T) {
				leaks(t)
				var files tierFiles
				w := mustCrew(t, offloaded(t, c, j0), seams{tier: files.wrap(faulty)})
				w.mustStep(t, 1)
				path := files.path(t, state)
				hurt(t, path, d)
				_, errs := w.step(t, context.Background(), 2)
				if written := state != "parameter" && state != "m" && state != "v"; written && errs[faulty] == nil {
					if got := w.hash(t); got != want {
						t.Errorf("the step came to %s, without damage to %s", got, want)
					}
					return
				}
				checkDamage(t, errs[faulty], d, offload.Key{Flat: d.flat, State: state}, path)
				if errs[0] != nil {
					says(t, errs[0], errs[faulty].Error())
				}
				_, errs = w.step(t, context.Background(), 3)
				for r, err := range errs {
					if err == nil {
						t.Errorf("rank %d makes another step", r)
					}
				}
			})
		}
	}
}

func hurt(t *testing.T, path string, d damage) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(d.do(f), f.Close()); err != nil {
		t.Fatal(err)
	}
}

// checkDamage checks what the rank with the damaged file says.
func checkDamage(t *testing.T, err error, d damage, k offload.Key, path string) {
	t.Helper()
	var call *offload.CallError
	if !errors.Is(err, d.is) || !errors.As(err, &call) || call.Rank != 1 || call.Key != k || call.Path != path {
		t.Fatalf("%v\nwant %v of %v in %s", err, d.is, k, path)
	}
	says(t, err, "rank 1", k.Flat, k.State, path)
}

// An evaluation and a look at the state meet damage too.
func TestOffloadDamageIsMetByReaders(t *testing.T) {
	c := cell{Stage: 3, Ranks: 2, Optim: zero.FileTier, Param: zero.FileTier}
	for _, state := range []string{"parameter", "m"} {
		t.Run(state, func(t *testing.T) {
			leaks(t)
			var files tierFiles
			w := mustCrew(t, offloaded(t, c, job(t, "micro", 2, 1, 4, 0)), seams{tier: files.wrap(1)})
			w.mustStep(t, 1)
			path := files.path(t, state)
			hurt(t, path, damages[0])
			var errs []error
			within(t, func() {
				errs = each(2, func(r int) error {
					if state == "parameter" {
						return passes[1].run(w, r)
					}
					return w.engines[r].Read(context.Background(), "wte.weight", 0, nil)
				})
			})
			checkDamage(t, errs[1], damages[0], offload.Key{Flat: "root", State: state}, path)
			if errs[0] == nil {
				t.Error("rank 0 returned no error")
			}
		})
	}
}

// No room on one rank's disk at the start: an error before training, from which nothing is left.
func TestOffloadNoRoomOnOneRank(t *testing.T) {
	leaks(t)
	j := offloaded(t, cell{Stage: 3, Ranks: 3, Optim: zero.FileTier, Param: zero.FileTier}, job(t, "micro", 3, 1, 4, 0))
	full := func(r int, inner offload.Tier) offload.Tier {
		return tiertest.Wrap(inner, func(verb string, k offload.Key) error {
			if r == 2 && verb == "reserve" {
				return &offload.SpaceError{Tier: inner.Name(), Rank: r, Path: j.Offload.Dir, Bytes: 100, Free: 10, Err: syscall.ENOSPC}
			}
			return nil
		})
	}
	cl, err := zeroshard.Local(context.Background(), j, zeroshard.WithTier(func(r int, _ string, inner offload.Tier) offload.Tier { return full(r, inner) }))
	if cl != nil || !errors.Is(err, offload.ErrSpace) || !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("%v, %v", cl, err)
	}
	says(t, err, "rank 2", j.Offload.Dir, "100 bytes", "10 are free")
}

// Tiers with files in one folder belong to one rank each; runs side by side do not see each other's, and names say rank and state.
func TestOffloadRunsShareAFolder(t *testing.T) {
	c := cell{Stage: 3, Ranks: 2, Optim: zero.FileTier, Param: zero.FileTier}
	j := offloaded(t, c, job(t, "micro", 4, 1, 8, 0))
	want, err := train(j)
	if err != nil {
		t.Fatal(err)
	}
	got := make([]result, 3)
	if err := errors.Join(each(len(got), func(i int) (err error) {
		got[i], err = train(j)
		return err
	})...); err != nil {
		t.Fatal(err)
	}
	if slices.ContainsFunc(got, func(r result) bool { return !r.equal(want) }) {
		t.Errorf("runs side by side: %v\nalone: %v", got, want)
	}
}

// A context cancelled while bytes move: either the step is done on all ranks, or all return the cause.
func TestOffloadCancelAtEveryTierOp(t *testing.T) {
	for _, c := range []cell{{Stage: 3, Ranks: 2, Prefetch: 1, Optim: zero.HostTier, Param: zero.FileTier}, {Stage: 3, Ranks: 1, Optim: zero.HostTier, Param: zero.HostTier}} {
		j := offloaded(t, c, job(t, "micro", 2, 1, 4, 0))
		j.Offload.SubGroup = 1 << 20
		pr, err := zeroshard.Plan(j)
		if err != nil {
			t.Fatal(err)
		}
		stopped := 0
		for n, op := range tierOps(pr.Train) {
			if testing.Short() && n%7 != 0 {
				continue
			}
			t.Run(pr.Train.Line(op), func(t *testing.T) {
				if cancelAt(t, j, pr.Train.Line(op)) {
					stopped++
				}
			})
		}
		if stopped == 0 {
			t.Errorf("%v: no cancellation stopped a step", c)
		}
	}
}
