package stagetest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"zeroshard"
	"zeroshard/checkpoint"
	"zeroshard/checkpoint/crashfs"
	"zeroshard/optim"
	"zeroshard/zero"
)

// A leg is a part of a run: a cell trains up to a step and saves there, for the next leg.
type leg struct {
	cell
	to int
}

// relay is a run in legs, each by a cluster of its own that knows the one before by what is saved alone.
type relay struct {
	job     zeroshard.Config
	dir     string // of tier files
	store   *checkpoint.Store
	options []zeroshard.Option
	saver   bool                     // save by a checkpoint.Saver, not by Store.Save
	skipped map[int]bool             // steps that this run skips
	hyper   func(int) optim.Hyper    // by step, Update left out; nil is the package's
	loaded  func(*zeroshard.Cluster) // called after each Restore
}

// memoryStore is a store that is gone with the test.
func memoryStore() *checkpoint.Store { return checkpoint.NewStore(&crashfs.FS{}, "run/checkpoints") }

// run runs legs after what is saved so far and returns the result of the last: state, and losses and norms of its own steps.
func (r *relay) run(legs ...leg) (out result, err error) {
	for i, l := range legs {
		if out, err = r.leg(l, i < len(legs)-1); err != nil {
			return out, fmt.Errorf("%v, up to step %d: %w", l.cell, l.to, err)
		}
	}
	return out, nil
}

func (r *relay) leg(l leg, save bool) (out result, err error) {
	ctx := context.Background()
	j := l.config(r.job)
	if r.dir != "" {
		j.Offload.Dir = r.dir
	}
	cl, err := zeroshard.Local(ctx, j, r.options...)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, cl.Close()) }()
	at, err := r.restore(ctx, cl)
	if err != nil {
		return out, err
	}
	for at.Step < l.to {
		at.Step++
		h := hyper(at.Step)
		if r.hyper != nil {
			h = r.hyper(at.Step)
		}
		h.Update = at.Updates + 1
		st, err := cl.Step(ctx, func(leaf int) (zero.Batch, error) { return batch(j, at.Step, leaf), nil }, h)
		if err != nil {
			return out, err
		}
		if (st.Skipped != nil) != r.skipped[at.Step] {
			return out, fmt.Errorf("step %d: skipped %+v", at.Step, st.Skipped)
		}
		if st.Skipped == nil {
			at.Updates++
		}
		at.Tokens += int64(st.Tokens)
		out.losses, out.norms = append(out.losses, st.Loss), append(out.norms, st.Norm)
	}
	held, err := cl.Eval(ctx, func(leaf int) (zero.Batch, error) { return batch(j, 0, leaf), nil })
	if err != nil {
		return out, err
	}
	out.held = held.Mean()
	for _, m := range cl.Memory() {
		if m.Planned != m.Used {
			return out, fmt.Errorf("rank %d planned %d bytes and used %d", m.Rank, m.Planned, m.Used)
		}
	}
	if out.hash, err = cl.StateSHA256(ctx); err != nil || !save {
		return out, err
	}
	return out, r.save(cl, at)
}

// restore loads the newest step, if there is one.
func (r *relay) restore(ctx context.Context, cl *zeroshard.Cluster) (at checkpoint.Position, err error) {
	step, err := r.store.Newest()
	if checkpoint.IsNone(err) {
		return at, nil
	}
	if err != nil {
		return at, err
	}
	s, err := r.store.Open(step)
	if err != nil {
		return at, err
	}
	err = errors.Join(cl.Restore(ctx, s), s.Close())
	if r.loaded != nil {
		r.loaded(cl)
	}
	return s.Manifest.Position, err
}

func (r *relay) save(cl *zeroshard.Cluster, at checkpoint.Position) error {
	m := cl.Manifest(at)
	m.Seed = r.job.Seed
	if !r.saver {
		return r.store.Save(m, cl.Sources())
	}
	s := checkpoint.NewSaver(r.store, 0, nil)
	return errors.Join(s.Save(m, cl.Sources()), s.Close())
}

// whole is a run up to a step without a break, on one plain rank, as it is after the step from.
func (r relay) whole(t *testing.T, from, to int) result {
	t.Helper()
	r.store = memoryStore()
	out, err := r.run(leg{plain, to})
	if err != nil {
		t.Fatal(err)
	}
	out.losses, out.norms = out.losses[from:], out.norms[from:]
	return out
}
