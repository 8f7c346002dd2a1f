package zero

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"zeroshard/device"
	"zeroshard/internal/invariants"
	"zeroshard/memory"
	"zeroshard/models"
	"zeroshard/optim"
)

// exec is one plan made ready to run on one rank: a task for every op, and what changes from run to run.
type exec struct {
	e      *Engine
	p      *Plan
	leaves []int // by slot; -1 for none
	tasks  []task
	done   []device.Event

	run    run       // the one at hand
	host64 []uint64  // reported scalars of all ranks
	host32 []float32 // reported logits
	index  []int     // by leaf: its scalars in host64
	poison poison    // under -tags invariants
}

// run is what changes from run to run.
type run struct {
	ctx   context.Context
	micro []Batch
	spans []int32 // in mode Decode
	step  int
	hyper optim.Hyper
}

// task is an op of a plan on a rank.
type task struct {
	label    string
	run      func() error // on the op's stream; nil for bookkeeping
	dst, src []device.Buffer
	feed     int // slot whose batch is copied to dst, or -1
	starts   []memory.Span
	ends     []memory.Span
}

func newExec(e *Engine, p *Plan) *exec {
	x := &exec{e: e, p: p, leaves: p.Leaves(e.cfg.Rank), tasks: make([]task, len(p.Ops)), done: make([]device.Event, len(p.Ops)),
		run: run{ctx: context.Background()}}
	x.index = x.leafIndex()
	starts, ends := p.byOp()
	for i := range p.Ops {
		t := &x.tasks[i]
		t.label, t.feed = p.Line(i), none
		for _, b := range starts[i] {
			t.starts = append(t.starts, p.span(b))
		}
		for _, b := range ends[i] {
			t.ends = append(t.ends, p.span(b))
		}
		if p.Ops[i].Lane != Host {
			t.run = x.guard(i, x.build(i, t))
		}
	}
	if invariants.Enabled {
		x.poison = newPoison(p)
	}
	return x
}

func (p *Plan) span(buf int) memory.Span {
	b := &p.Bufs[buf]
	return memory.Span{Kind: b.Kind, Name: b.Name, Bytes: b.Bytes()}
}

// guard turns an op's error or panic into an *OpError and wakes the peers at once.
func (x *exec) guard(i int, f func() error) func() error {
	watch := x.e.cfg.Watch
	return func() (err error) {
		if watch != nil {
			watch.Op(x.p, i, false)
			defer watch.Op(x.p, i, true)
		}
		defer func() {
			if v := recover(); v != nil {
				err = &device.PanicError{Label: x.tasks[i].label, Value: v, Stack: debug.Stack()}
			}
			if err != nil {
				err = x.e.Fail(x.opError(i, err))
			}
		}()
		return f()
	}
}

func (x *exec) opError(i int, err error) *OpError {
	return &OpError{Rank: x.e.cfg.Rank, Step: x.run.step, Line: i, Op: x.tasks[i].label, Err: err}
}

// load takes the batches of a run.
func (x *exec) load(ctx context.Context, micro []Batch) error {
	if err := x.e.Err(); err != nil {
		return err
	}
	rows := x.p.Options.Shape.Rows()
	if len(micro) != len(x.leaves) {
		return x.e.Fail(fmt.Errorf("%w: rank %d got %d micro-batches, its plan has %d slots", ErrBatch, x.e.cfg.Rank, len(micro), len(x.leaves)))
	}
	for slot, leaf := range x.leaves {
		if b := micro[slot]; leaf != none && (len(b.Tokens) != rows || len(b.Targets) != rows) {
			return x.e.Fail(fmt.Errorf("%w: micro-batch %d has %d tokens and %d targets, both must be %d", ErrBatch, leaf, len(b.Tokens), len(b.Targets), rows))
		}
	}
	x.run.ctx, x.run.micro = ctx, micro
	return nil
}

// issue hands the plan to the streams and waits for them: the whole executor.
func (x *exec) issue() error {
	if x.p.Options.Mode != models.Decode {
		x.e.forget()
	}
	for i := range x.p.Ops {
		op, t := &x.p.Ops[i], &x.tasks[i]
		for _, s := range t.starts {
			x.e.cfg.Arena.Begin(s)
		}
		if op.Lane != Host {
			s := x.e.streams[op.Lane]
			for _, d := range op.After {
				s.Wait(x.done[d])
			}
			s.Do(t.label, t.run)
			x.copies(s, i)
			x.done[i] = s.Record()
		}
		for _, s := range t.ends {
			x.e.cfg.Arena.End(s)
		}
		if invariants.Enabled {
			x.poison.after(x, i)
		}
	}
	return x.sync()
}

// copies appends an op's copies between host and device to its stream.
func (x *exec) copies(s device.Stream, i int) {
	t := &x.tasks[i]
	if t.feed != none && x.leaves[t.feed] != none {
		b := &x.run.micro[t.feed]
		t.src[0], t.src[1], t.src[2] = device.Host(b.Tokens), device.Host(b.Targets), device.Host(x.run.spans)
	}
	for k := range t.dst {
		if t.src[k].Len == 0 {
			continue
		}
		if err := x.e.cfg.Device.Copy(s, t.dst[k], t.src[k]); err != nil {
			s.Do(t.label, func() error { return x.e.Fail(x.opError(i, err)) })
		}
	}
}

// sync waits for all lanes and returns what ended the run: the first failure of which this rank knows, its own or a peer's.
func (x *exec) sync() error {
	for l := range Host {
		if err := x.e.streams[l].Sync(); err != nil && !reported(err) {
			x.e.Fail(x.blame(err))
		}
	}
	return x.e.Err()
}

// reported says that an op's guard has met err.
func reported(err error) bool {
	var op *OpError
	return errors.As(err, &op)
}

// blame finds the op behind an error that no guard has met: one of the device itself. Lanes and waits carry an error to later ops
// only, so it is the first op of the list whose event has one.
func (x *exec) blame(err error) error {
	for i := range x.done {
		if at := x.done[i].Await(); at != nil && !reported(at) {
			return x.opError(i, at)
		}
	}
	return &OpError{Rank: x.e.cfg.Rank, Step: x.run.step, Line: none, Op: "(after the last)", Err: err}
}

func (x *exec) buffer(r Ref) device.Buffer {
	return x.p.buffer(r, x.e.cfg.Rank, x.e.mem.resident, x.e.mem.transient)
}
