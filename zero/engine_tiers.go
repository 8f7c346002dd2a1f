package zero

import (
	"context"
	"errors"
	"fmt"

	"zeroshard/device"
	"zeroshard/offload"
)

// room makes room in the tiers for what rests there.
func (e *Engine) room(ctx context.Context) error {
	extents := map[string][]offload.Extent{}
	seen := map[offload.Key]bool{}
	for _, p := range e.cfg.Program.Plans() {
		for i := range p.Bufs {
			b := &p.Bufs[i]
			if b.Tier == "" {
				continue
			}
			if k := p.key(i); !seen[k] {
				seen[k] = true
				extents[b.Tier] = append(extents[b.Tier], offload.Extent{Key: k, Bytes: b.Bytes()})
			}
		}
	}
	for _, name := range []string{HostTier, FileTier} {
		if len(extents[name]) == 0 {
			continue
		}
		t, ok := e.cfg.Tiers[name]
		if !ok {
			return fmt.Errorf("%w: the plan uses tier %q, which rank %d does not have", ErrOptions, name, e.cfg.Rank)
		}
		if err := t.Reserve(ctx, extents[name]); err != nil {
			return err // which names the rank and the tier
		}
	}
	return nil
}

// key names what rests in buffer b.
func (p *Plan) key(b int) offload.Key {
	return offload.Key{Flat: p.model.flats[p.Bufs[b].Flat].Name, State: p.Bufs[b].State}
}

// rest is a tiered part as its tier knows it.
func (x *exec) rest(r Ref) (t offload.Tier, k offload.Key, off int64) {
	b := &x.p.Bufs[r.Buf]
	lo, _ := x.p.view(r, x.e.cfg.Rank)
	return x.e.cfg.Tiers[b.Tier], x.p.key(r.Buf), int64(lo) * int64(b.DType.Size())
}

// move makes the task of a fetch or an evict. A context that ends does not stop it: that is for the collectives to notice, where all ranks do. A
// rank that stopped in the middle of its updates, behind the last of them, would leave its peers a step ahead.
func (x *exec) move(op *Op, s device.Stream) func() error {
	if op.Verb == Fetch {
		t, k, off := x.rest(op.Args.Src)
		dst := x.buffer(op.Args.Dst)
		return func() error { return t.Get(context.Background(), s, k, off, dst) }
	}
	t, k, off := x.rest(op.Args.Dst)
	src := x.buffer(op.Args.Src)
	return func() error { return t.Put(context.Background(), s, k, off, src) }
}

func (e *Engine) closeTiers() error {
	var errs []error
	for _, t := range e.cfg.Tiers {
		errs = append(errs, t.Close())
	}
	return errors.Join(errs...)
}
