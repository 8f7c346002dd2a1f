package zero

import (
	"context"
	"fmt"

	"zeroshard/device"
	"zeroshard/shard"
)

// Master is the state index of the master weights; others index Options.States.
const Master = -1

// State is a place where a parameter's values rest.
func (e *Engine) state(name string, state int) (flat int, seg shard.Segment, buf int, sharded bool, err error) {
	p := e.train.p
	flat, k, ok := p.model.layout.Lookup(name)
	if !ok {
		return 0, seg, 0, false, fmt.Errorf("%w: %q", ErrParameter, name)
	}
	f := &p.model.flats[flat]
	if state == Master {
		return flat, f.Segs[k], f.master, f.gatherParam, nil
	}
	if state < 0 || state >= len(f.states) {
		return 0, seg, 0, false, fmt.Errorf("%w: %q has no optimizer state %d", ErrParameter, name, state)
	}
	return flat, f.Segs[k], f.states[state], f.shardOptim, nil
}

// Write sets a parameter's values (state Master) or one of its optimizer states on this rank. value fills dst with elements
// [lo, lo+len(dst)) of the parameter, and is asked only for what rests here. All ranks must be given the same values.
func (e *Engine) Write(name string, state int, value func(lo int, dst []float32) error) error {
	flat, seg, buf, sharded, err := e.state(name, state)
	if err != nil {
		return err
	}
	x, s := e.train, e.streams[Copy]
	x.pieces(flat, sharded, func(piece shard.Segment, lo, hi int) {
		if piece.Param.Name != seg.Param.Name || err != nil {
			return
		}
		dst := x.buffer(Ref{Buf: buf}).Slice(lo, hi)
		for at := 0; at < dst.Len && err == nil; at += snapshotChunk {
			part := dst.Slice(at, min(at+snapshotChunk, dst.Len))
			host := make([]float32, part.Len)
			if err = value(piece.From+at, host); err != nil {
				return
			}
			if err = e.cfg.Device.Copy(s, part, device.Host(host)); err == nil {
				err = s.Sync()
			}
		}
	})
	return err
}

// Read copies a parameter's values, or one of its optimizer states, into dst (as many elements as the parameter has); with dst nil
// this rank only serves the others. Every rank must call it, in the same order.
func (e *Engine) Read(ctx context.Context, name string, state int, dst []float32) error {
	if err := e.Err(); err != nil {
		return err
	}
	flat, seg, buf, sharded, err := e.state(name, state)
	if err != nil {
		return err
	}
	if n := seg.Range.Len(); dst != nil && len(dst) != n {
		return fmt.Errorf("%w: %q has %d elements, not %d", ErrParameter, name, n, len(dst))
	}
	src := e.train.buffer(Ref{Buf: buf})
	if !sharded {
		if dst == nil || len(dst) == 0 {
			return nil
		}
		return e.fetch(device.Host(dst), src.Slice(seg.Range.Lo, seg.Range.Hi))
	}
	f := &e.train.p.model.flats[flat]
	for lo := 0; lo < f.shardLen; lo += e.cfg.Program.Chunk {
		hi := min(lo+e.cfg.Program.Chunk, f.shardLen)
		if err := e.readChunk(ctx, src.Slice(lo, hi), shard.Range{Lo: lo, Hi: hi}, f.shardLen, seg.Range, dst); err != nil {
			return err
		}
	}
	return nil
}

// readChunk gathers elements chunk of every shard through the transient arena, and copies what lies in want to dst.
func (e *Engine) readChunk(ctx context.Context, src device.Buffer, chunk shard.Range, shardLen int, want shard.Range, dst []float32) error {
	g := e.cfg.Groups[shard.Shards]
	met := false
	for r := range g.Size() {
		met = met || (r*shardLen+chunk.Lo < want.Hi && want.Lo < r*shardLen+chunk.Hi)
	}
	if !met {
		return nil
	}
	n := chunk.Len()
	all := device.Buffer{Mem: e.mem.transient, Len: n * g.Size(), DType: device.F32}
	s := e.streams[Comm]
	s.Do("read state", func() error { return g.AllGather(ctx, s, all, src) })
	if err := s.Sync(); err != nil {
		return e.Fail(err)
	}
	for r := range g.Size() {
		start := r*shardLen + chunk.Lo
		lo, hi := max(start, want.Lo), min(start+n, want.Hi)
		if dst == nil || lo >= hi {
			continue
		}
		part := all.Slice(r*n+lo-start, r*n+hi-start)
		if err := e.fetch(device.Host(dst[lo-want.Lo:hi-want.Lo]), part); err != nil {
			return err
		}
	}
	return nil
}

func (e *Engine) fetch(dst, src device.Buffer) error {
	s := e.streams[Copy]
	if err := e.cfg.Device.Copy(s, dst, src); err != nil {
		return err
	}
	return s.Sync()
}

// View is what rests of a parameter's state on this rank, in place: elements [from, from+len(view)). It is nil where nothing rests
// here or the CPU cannot address it.
func (e *Engine) View(name string, state int) (view []float32, from int, err error) {
	flat, seg, buf, sharded, err := e.state(name, state)
	if err != nil {
		return nil, 0, err
	}
	e.train.pieces(flat, sharded, func(piece shard.Segment, lo, hi int) {
		if piece.Param.Name == seg.Param.Name {
			view, from = e.train.buffer(Ref{Buf: buf}).Slice(lo, hi).Float32s(), piece.From
		}
	})
	return view, from, nil
}
