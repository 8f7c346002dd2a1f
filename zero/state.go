package zero

import (
	"context"
	"fmt"

	"zeroshard/device"
	"zeroshard/shard"
)

// Master is the state index of the master weights; others index Options.States.
const Master = -1

// place is where a parameter's values or one of its states rest.
type place struct {
	flat    int
	seg     shard.Segment
	buf     int
	sharded bool
}

func (e *Engine) state(name string, state int) (place, error) {
	p := e.first.p
	flat, k, ok := p.model.layout.Lookup(name)
	if !ok {
		return place{}, fmt.Errorf("%w: %q", ErrParameter, name)
	}
	f := &p.model.flats[flat]
	if state == Master {
		return place{flat, f.Segs[k], f.master, f.gatherParam}, nil
	}
	if state < 0 || state >= len(f.states) {
		return place{}, fmt.Errorf("%w: %q has no optimizer state %d", ErrParameter, name, state)
	}
	return place{flat, f.Segs[k], f.states[state], f.shardOptim}, nil
}

// here calls f for the parts of the parameter that rest on this rank: elements from on of the parameter, [lo, hi) of the buffer.
func (e *Engine) here(at place, f func(from, lo, hi int) error) (err error) {
	e.first.pieces(at.flat, at.sharded, func(piece shard.Segment, lo, hi int) {
		if err == nil && piece.Param.Name == at.seg.Param.Name {
			err = f(piece.From, lo, hi)
		}
	})
	return err
}

// Write sets a parameter's values (state Master) or one of its optimizer states on this rank. value fills dst with elements
// [lo, lo+len(dst)) of the parameter, and is asked only for what rests here. All ranks must be given the same values.
func (e *Engine) Write(name string, state int, value func(lo int, dst []float32) error) error {
	if err := e.Err(); err != nil {
		return err
	}
	at, err := e.state(name, state)
	if err != nil {
		return err
	}
	e.forget()
	host := make([]float32, min(snapshotChunk, at.seg.Range.Len()))
	return e.here(at, func(from, lo, hi int) error {
		for ; lo < hi; lo, from = lo+len(host), from+len(host) {
			part := host[:min(len(host), hi-lo)]
			if err := value(from, part); err != nil {
				return err
			}
			if err := e.put(at.buf, lo, device.Host(part)); err != nil {
				return e.Fail(fmt.Errorf("zero: rank %d: write of %q: %w", e.cfg.Rank, name, err)) // peers have other values now
			}
		}
		return nil
	})
}

// put copies host values to elements from lo on of a resident buffer, wherever it rests.
func (e *Engine) put(buf, lo int, host device.Buffer) error {
	ref := Ref{Buf: buf, Part: shard.Range{Lo: lo, Hi: lo + host.Len}}
	if e.first.p.Bufs[buf].Tier == "" {
		return e.copy(e.first.buffer(ref), host)
	}
	t, k, off := e.first.rest(ref)
	return t.Put(context.Background(), e.streams[Copy], k, off, host)
}

// Read copies a parameter's values, or one of its optimizer states, into dst (as many elements as the parameter has); with dst nil
// this rank only serves the others. Every rank must call it, in the same order.
func (e *Engine) Read(ctx context.Context, name string, state int, dst []float32) error {
	if err := e.Err(); err != nil {
		return err
	}
	at, err := e.state(name, state)
	if err != nil {
		return err
	}
	if n := at.seg.Range.Len(); dst != nil && len(dst) != n {
		return fmt.Errorf("%w: %q has %d elements, not %d", ErrParameter, name, n, len(dst))
	}
	if !at.sharded {
		if len(dst) == 0 {
			return nil
		}
		return e.copy(device.Host(dst), e.first.buffer(Ref{Buf: at.buf}).Slice(at.seg.Range.Lo, at.seg.Range.Hi))
	}
	n := e.first.p.model.flats[at.flat].shardLen
	for lo := 0; lo < n; lo += e.cfg.Program.Chunk {
		if err := e.readChunk(ctx, at, shard.Range{Lo: lo, Hi: min(lo+e.cfg.Program.Chunk, n)}, dst); err != nil {
			return err
		}
	}
	return nil
}

// readChunk gathers elements chunk of every shard through the transient arena, and copies what lies in the parameter to dst.
func (e *Engine) readChunk(ctx context.Context, at place, chunk shard.Range, dst []float32) error {
	g, want := e.cfg.Groups[shard.Shards], at.seg.Range
	shardLen := e.first.p.model.flats[at.flat].shardLen
	met := false
	for r := range g.Size() {
		met = met || (r*shardLen+chunk.Lo < want.Hi && want.Lo < r*shardLen+chunk.Hi)
	}
	if !met {
		return nil
	}
	e.forget() // all takes bytes of the caches
	n := chunk.Len()
	all := device.Buffer{Mem: e.mem.transient, Len: n * g.Size(), DType: device.F32}
	ref, s := Ref{Buf: at.buf, Part: chunk}, e.streams[Comm]
	s.Do("read state", func() error {
		if e.first.p.Bufs[at.buf].Tier == "" {
			return g.AllGather(ctx, s, all, e.first.buffer(ref))
		}
		mine := all.Slice(g.Rank()*n, (g.Rank()+1)*n)
		t, k, off := e.first.rest(ref)
		if err := t.Get(context.Background(), s, k, off, mine); err != nil {
			return err
		}
		return g.AllGather(ctx, s, all, mine)
	})
	if err := s.Sync(); err != nil {
		return e.Fail(err)
	}
	for r := range g.Size() {
		start := r*shardLen + chunk.Lo
		lo, hi := max(start, want.Lo), min(start+n, want.Hi)
		if dst == nil || lo >= hi {
			continue
		}
		if err := e.copy(device.Host(dst[lo-want.Lo:hi-want.Lo]), all.Slice(r*n+lo-start, r*n+hi-start)); err != nil {
			return err
		}
	}
	return nil
}

func (e *Engine) copy(dst, src device.Buffer) error {
	s := e.streams[Copy]
	if err := e.cfg.Device.Copy(s, dst, src); err != nil {
		return err
	}
	return s.Sync()
}

// View is what rests of a parameter's state on this rank, in place: elements [from, from+len(view)). It is nil where nothing rests
// in its device memory or the CPU cannot address it.
func (e *Engine) View(name string, state int) (view []float32, from int, err error) {
	if err := e.Err(); err != nil {
		return nil, 0, err
	}
	at, err := e.state(name, state)
	if err != nil || e.first.p.Bufs[at.buf].Tier != "" {
		return nil, 0, err
	}
	err = e.here(at, func(first, lo, hi int) error {
		view, from = e.first.buffer(Ref{Buf: at.buf}).Slice(lo, hi).Float32s(), first
		return nil
	})
	return view, from, err
}
