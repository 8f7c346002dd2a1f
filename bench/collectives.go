package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"zeroshard/collectives"
	"zeroshard/device"
)

// DefaultRanks is the ranks of a group unless Options.Threads says another number: one thread each.
const DefaultRanks = 2

// Collectives measures all-gather and reduce-scatter of full buffers of 1 MiB to 256 MiB. Their traffic is what must be moved: an all-gather
// in place reads and writes what comes from peers, a reduce-scatter reads every part of a slice and writes one. The limit of
// both is the fastest copy of the bytes that an all-gather receives, by as many threads as there are ranks.
func Collectives(ctx context.Context, b Backend, o Options, emit Emit) error {
	ranks := DefaultRanks
	if o.Threads > 0 {
		ranks = o.Threads
	}
	for size := 1 << 20; size <= 256<<20; size *= 4 {
		for _, verb := range [...]collectives.Verb{collectives.AllGather, collectives.ReduceScatter} {
			if err := collective(ctx, b, o, meeting{verb, ranks, size}, emit); err != nil {
				return err
			}
		}
	}
	return nil
}

// meeting is one verb among ranks, with full buffers of size bytes.
type meeting struct {
	verb        collectives.Verb
	ranks, size int
}

func (m meeting) shape() string { return fmt.Sprintf("%d MiB, %d ranks", m.size>>20, m.ranks) }

// slice is the elements of one rank's slice.
func (m meeting) slice() int { return m.size / 4 / m.ranks }

// moved is the bytes that all ranks read and write.
func (m meeting) moved() float64 {
	slice, n := float64(4*m.slice()), float64(m.ranks)
	if m.verb == collectives.AllGather {
		return 2 * slice * n * (n - 1)
	}
	return slice * n * (n + 1)
}

func collective(ctx context.Context, b Backend, o Options, m meeting, emit Emit) (err error) {
	if !o.wants(m.verb.String(), m.shape()) {
		return nil
	}
	pool := b.Pool(m.ranks)
	defer pool.Close()
	a := &arena{dev: b.Device()}
	defer func() { err = errors.Join(err, a.close()) }()
	groups, err := b.Groups(m.ranks)
	if err != nil {
		return err
	}
	for _, g := range groups {
		defer g.Close()
	}
	run, err := m.prepare(ctx, a, groups)
	if err != nil {
		return err
	}
	copies, moved, err := copyLoops(a, pool, 2*m.size/m.ranks*(m.ranks-1))
	if err != nil {
		return err
	}
	t, err := contest(o.Time, append([]work{run}, copies...)...)
	if err != nil {
		return err
	}
	emit(Row{Name: m.verb.String(), Shape: m.shape(), Threads: m.ranks, Value: m.moved() / t[0] / 1e9, Unit: "GB/s",
		Limit: moved / slices.Min(t[1:]) / 1e9}.held())
	return nil
}

// prepare returns one call of the verb on every rank.
func (m meeting) prepare(ctx context.Context, a *arena, groups []collectives.Group) (work, error) {
	fold, err := collectives.NewFold(m.ranks, m.ranks, 1, 0)
	if err != nil {
		return nil, err
	}
	calls := make([]work, m.ranks)
	for r, g := range groups {
		buf, err := a.floats(m.ranks * m.slice())
		if err != nil {
			return nil, err
		}
		full := buf[0]
		own := full.Slice(r*m.slice(), (r+1)*m.slice())
		if m.verb == collectives.AllGather {
			calls[r] = func() error { return g.AllGather(ctx, nil, full, own) }
			continue
		}
		out, err := a.buffer(m.slice(), device.F32)
		if err != nil {
			return nil, err
		}
		reduction := collectives.Reduction{Out: []device.Buffer{out}, Src: full, Fold: fold}
		calls[r] = func() error { return g.ReduceScatter(ctx, nil, reduction) }
	}
	return func() error {
		var all errgroup.Group
		for _, call := range calls {
			all.Go(call)
		}
		return all.Wait()
	}, nil
}
