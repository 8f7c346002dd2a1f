package zero

import (
	"context"
	"fmt"

	"zeroshard/device"
	"zeroshard/shard"
)

// The division: a checkpoint holds every element of every state once, and all ranks write it together. What rests on a rank alone, it saves. What
// several hold alike they divide: the replicas of a shard, or all ranks what is not sharded. Each of n such ranks gets as many whole grains
// (shard.Grain elements), rounded up, of the flat's range in their common order, so the last ones may get fewer, or none. Of 5 grains, 3
// replicas save grains 0 and 1, 2 and 3, and 4; of 4 grains, 0 and 1, 2 and 3, and nothing.
//
// part is that range of a flat, share the pieces of parameters in it, Share all of a rank's pieces, each a Held.

// Held is elements [From, From+Len) of a parameter's values (State is Master) or of one of its optimizer states.
type Held struct {
	Param     string
	State     int
	From, Len int
	Tier      string // where they rest, "" for device memory
}

// Share lists what a rank saves. The shares of all ranks are every element of every state, each once.
func (p *Plan) Share(rank int) []Held { return p.held(rank, false) }

// held lists a rank's pieces: what it saves, or all that rests on it.
func (p *Plan) held(rank int, all bool) (out []Held) {
	for i := range p.model.flats {
		f := &p.model.flats[i]
		out = p.share(out, f, shareOf{i, rank, Master, f.gatherParam, all})
		for s := range f.states {
			out = p.share(out, f, shareOf{i, rank, s, f.shardOptim, all})
		}
	}
	return out
}

// shareOf says whose share is meant, of what.
type shareOf struct {
	flat, rank, state int
	sharded           bool // the state is: ranks hold it alike only across replicas
	all               bool // what rests on the rank, not what of it it saves
}

// part is the range of a flat that a rank saves, or that rests on it.
func (p *Plan) part(f *flatInfo, of shareOf) shard.Range {
	r, axis := shard.Range{Lo: 0, Hi: f.Len}, shard.World
	if of.sharded {
		r, axis = p.model.layout.Shard(of.flat, p.Mesh.Coord(of.rank, shard.Shards), p.Mesh), shard.Replicate
	}
	if of.all {
		return r
	}
	alike := p.Mesh.Size(axis)
	each := (r.Len()/shard.Grain + alike - 1) / alike * shard.Grain
	lo := min(r.Lo+p.Mesh.Coord(of.rank, axis)*each, r.Hi)
	return shard.Range{Lo: lo, Hi: min(lo+each, r.Hi)}
}

// share appends a rank's share of one state of a flat.
func (p *Plan) share(out []Held, f *flatInfo, of shareOf) []Held {
	buf := f.master
	if of.state != Master {
		buf = f.states[of.state]
	}
	for seg := range f.Pieces(p.part(f, of)) {
		out = append(out, Held{Param: seg.Param.Name, State: of.state, From: seg.From, Len: seg.Range.Len(), Tier: p.Bufs[buf].Tier})
	}
	return out
}

// Share is what this rank saves.
func (e *Engine) Share() []Held { return e.first.p.Share(e.cfg.Rank) }

// Rests is all that rests on this rank, in the same order.
func (e *Engine) Rests() []Held { return e.first.p.held(e.cfg.Rank, true) }

// SaveBytes is what a rank saves, at most, and the most of it that rests outside files, so that a copy of it is taken before training goes
// on. Between parameters a flat has holes, so ranks differ, and it is not the first that has the most. In large worlds the holes are counted in.
func (pr *Program) SaveBytes() (all, copied int64) {
	p := pr.first()
	if p.Mesh.World() > exactWorlds {
		return p.shareBound()
	}
	for rank := range p.Mesh.World() {
		var a, c int64
		for _, h := range p.Share(rank) {
			a += int64(h.Len) * 4
			if h.Tier != FileTier {
				c += int64(h.Len) * 4
			}
		}
		all, copied = max(all, a), max(copied, c)
	}
	return all, copied
}

// exactWorlds is the most ranks of which each is asked for its share.
const exactWorlds = 1024

// shareBound is SaveBytes with the holes: the first rank's part of each flat is as long as any.
func (p *Plan) shareBound() (all, copied int64) {
	for i := range p.model.flats {
		f := &p.model.flats[i]
		add := func(of shareOf, buf int) {
			n := int64(p.part(f, of).Len()) * 4
			all += n
			if p.Bufs[buf].Tier != FileTier {
				copied += n
			}
		}
		add(shareOf{i, 0, Master, f.gatherParam, false}, f.master)
		for s := range f.states {
			add(shareOf{i, 0, s, f.shardOptim, false}, f.states[s])
		}
	}
	return all, copied
}

// ReadHere copies elements [from, from+len(dst)) of a parameter's state, which must rest on this rank, to dst. It is not collective. Not
// during a call of the engine.
func (e *Engine) ReadHere(name string, state, from int, dst []float32) error {
	return e.resting(name, state, shard.Range{Lo: from, Hi: from + len(dst)}, func(buf, lo int) error {
		ref := Ref{Buf: buf, Part: shard.Range{Lo: lo, Hi: lo + len(dst)}}
		if e.first.p.Bufs[buf].Tier == "" {
			return e.copy(device.Host(dst), e.first.buffer(ref))
		}
		t, k, off := e.first.rest(ref)
		return t.Get(context.Background(), e.streams[Copy], k, off, device.Host(dst))
	})
}

// WriteHere sets elements [from, from+len(src)) of a parameter's state, which must rest on this rank, as ReadHere reads them. All ranks must be
// given the same values.
func (e *Engine) WriteHere(name string, state, from int, src []float32) error {
	e.forget()
	return e.resting(name, state, shard.Range{Lo: from, Hi: from + len(src)}, func(buf, lo int) error {
		return e.put(buf, lo, device.Host(src))
	})
}

// Place is where a piece rests, to be written before the next call of the engine; nil where the CPU cannot reach it.
func (e *Engine) Place(h Held) (place []float32, err error) {
	e.forget()
	err = e.resting(h.Param, h.State, shard.Range{Lo: h.From, Hi: h.From + h.Len}, func(buf, lo int) error {
		if e.first.p.Bufs[buf].Tier == "" {
			place = e.first.buffer(Ref{Buf: buf}).Slice(lo, lo+h.Len).Float32s()
		}
		return nil
	})
	return place, err
}

// resting calls f with the place of elements r of a parameter's state: the buffer, and the element of it. They must rest on this rank.
func (e *Engine) resting(name string, state int, r shard.Range, f func(buf, lo int) error) error {
	if err := e.Err(); err != nil {
		return err
	}
	at, err := e.state(name, state)
	if err != nil || r.Len() == 0 {
		return err
	}
	found := false
	err = e.here(at, func(first, lo, hi int) error {
		if r.Lo < first || r.Hi > first+hi-lo {
			return nil
		}
		found = true
		return f(at.buf, lo+r.Lo-first)
	})
	if err == nil && !found {
		err = fmt.Errorf("%w: elements [%d, %d) of %q do not rest on rank %d", ErrParameter, r.Lo, r.Hi, name, e.cfg.Rank)
	}
	return err
}
