package stagetest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"

	"zeroshard"
	"zeroshard/device"
	"zeroshard/optim"
	"zeroshard/shard"
	"zeroshard/zero"
)

// spoiler is a device that fills buffers with NaN as soon as the op that wrote them is done.
type spoiler struct {
	device.Device
	mu    sync.Mutex
	mems  []device.Mem // as the engine reserves them: resident, transient, …
	label string       // of the op to spoil; "" for none
	what  []spoiled
	with  float32 // NaN if 0
}

// spoiled is fp32 elements of an arena.
type spoiled struct {
	resident bool
	off      int64
	len      int
}

func (d *spoiler) Alloc(bytes int64) (device.Mem, error) {
	m, err := d.Device.Alloc(bytes)
	d.mems = append(d.mems, m)
	return m, err
}

func (d *spoiler) NewStream(name string) (device.Stream, error) {
	s, err := d.Device.NewStream(name)
	return &spoilerStream{s, d}, err
}

// arm chooses the op to spoil.
func (d *spoiler) arm(label string, what []spoiled) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.label, d.what = label, what
}

func (d *spoiler) spoil(label string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if label != d.label {
		return
	}
	for _, s := range d.what {
		mem := d.mems[1]
		if s.resident {
			mem = d.mems[0]
		}
		values := device.Buffer{Mem: mem, Off: s.off, Len: s.len, DType: device.F32}.Float32s()
		for i := range values {
			if values[i] = d.with; d.with == 0 {
				values[i] = float32(math.NaN())
			}
		}
	}
}

type spoilerStream struct {
	device.Stream
	dev *spoiler
}

func (s *spoilerStream) Do(label string, task func() error) {
	s.Stream.Do(label, func() error {
		err := task()
		s.dev.spoil(label)
		return err
	})
}

// outputs lists what op i of a training plan writes on a rank, in fp32. Scalars are left out: they are the accounts of a step, not its
// data. So is what an update writes: there is no way back from that.
func outputs(pr *zero.Program, i, rank int) (out []spoiled) {
	p := pr.Train
	op := &p.Ops[i]
	if op.Slot >= 0 && p.Leaves(rank)[op.Win*p.Windows.Size+op.Slot] < 0 {
		return nil
	}
	a := &op.Args
	var refs []zero.Ref
	switch op.Verb {
	case zero.Forward, zero.Recompute, zero.LossGrad, zero.Backward:
		refs = append(refs, zero.Ref{Buf: a.Out}, zero.Ref{Buf: a.DIn})
		if op.Verb != zero.Backward {
			refs = append(refs, zero.Ref{Buf: a.Saved})
		}
		for _, g := range a.G {
			refs = append(refs, zero.Ref{Buf: g})
		}
	case zero.Clear:
		for _, g := range a.G {
			refs = append(refs, zero.Ref{Buf: g})
		}
	case zero.Merge:
		refs = append(refs, a.Dst)
	case zero.Reduce:
		refs = append(refs, a.Outs...)
	case zero.Gather:
		if op.Note != "updated" {
			refs = append(refs, a.Dst)
		}
	}
	for _, r := range refs {
		if r.Buf < 0 || p.Bufs[r.Buf].DType != device.F32 {
			continue
		}
		lo, hi := extent(pr, r, rank)
		b := &p.Bufs[r.Buf]
		out = append(out, spoiled{b.Resident, b.Off + int64(lo)*4, hi - lo})
	}
	return out
}

// extent is the elements of its buffer that a Ref means on a rank.
func extent(pr *zero.Program, r zero.Ref, rank int) (lo, hi int) {
	p := pr.Train
	b := &p.Bufs[r.Buf]
	if r.Cut == zero.Whole {
		return 0, b.Len
	}
	n := pr.Layout.ShardLen(b.Flat, p.Mesh)
	if b.Len != n {
		lo = p.Mesh.Coord(rank, shard.Shards) * n
	}
	if r.Cut == zero.Sub {
		n /= p.Mesh.Size(shard.Replicate)
		lo += p.Mesh.Coord(rank, shard.Replicate) * n
	}
	return lo, lo + n
}

// A NaN in the output of every op, on one rank: all ranks skip the step alike and say where it was met, no state changes, and the next
// step is the one of a run that never met it.
func TestNaNAtEveryOp(t *testing.T) {
	for _, c := range []struct {
		leaves, faulty int
		cell
	}{
		{4, 1, cell{Stage: 3, Ranks: 2, Prefetch: 1}},
		{5, 1, cell{Stage: 3, Ranks: 3, Recompute: 1}},
		{4, 0, cell{Stage: 0, Ranks: 2}},
		{6, 2, cell{Stage: 1, Ranks: 3, Window: 1}},
		{4, 3, cell{Stage: 2, Ranks: 4, Replicas: 2}},
		{4, 1, cell{Stage: 3, Ranks: 2, Threshold: 200}},
		{3, 0, cell{Stage: 0, Ranks: 1}},
	} {
		t.Run(fmt.Sprintf("stage %d, %d ranks, %d leaves, on rank %d", c.Stage, c.Ranks, c.leaves, c.faulty), func(t *testing.T) {
			leaks(t)
			nanAtEveryOp(t, c.config(job(t, "micro", c.leaves, 1, 4, 0)), c.faulty)
		})
	}
}

func nanAtEveryOp(t *testing.T, j zeroshard.Config, faulty int) {
	pr, err := zeroshard.Plan(j)
	if err != nil {
		t.Fatal(err)
	}
	dev := &spoiler{}
	w := mustCrew(t, j, seams{device: func(r int, d device.Device) device.Device {
		if r != faulty {
			return d
		}
		dev.Device = d
		return dev
	}})
	if dev.mems[0].Size() != pr.Train.Resident || dev.mems[1].Size() != pr.Transient {
		t.Fatal("the engine reserves in another order than this test believes")
	}
	clean := mustCrew(t, j, seams{})
	before, tried := w.hash(t), 0
	for i := range pr.Train.Ops {
		what := outputs(pr, i, faulty)
		if len(what) == 0 || i%every(pr.Train) != 0 {
			continue
		}
		tried++
		dev.arm(pr.Train.Line(i), what)
		st := w.mustStep(t, tried)
		dev.arm("", nil)
		if gaps := pr.Train.Ops[i].Verb == zero.Clear && pr.Train.Ops[i].Note == "gaps"; gaps {
			// The units write all but the gaps again, and no result depends on what lies in a gap.
			if st.Skipped != nil {
				t.Errorf("%s: skipped for a NaN between parameters: %+v", pr.Train.Line(i), st.Skipped)
			}
		} else {
			checkSkip(t, pr, i, faulty, st)
			if got := w.hash(t); got != before {
				t.Fatalf("%s: a skipped step changed the state", pr.Train.Line(i))
			}
			st = w.mustStep(t, tried)
		}
		want := clean.mustStep(t, tried)
		before = w.hash(t)
		if report(st) != report(want) || before != clean.hash(t) {
			t.Fatalf("%s: the step after it is %s, without the fault %s", pr.Train.Line(i), report(st), report(want))
		}
	}
	if tried < 2 {
		t.Errorf("only %d ops were tried", tried)
	}
}

// checkSkip checks what a skip says: the norm's line, a rank and a parameter with the NaN.
func checkSkip(t *testing.T, pr *zero.Program, i, faulty int, st zero.Stats) {
	t.Helper()
	p, line, s := pr.Train, pr.Train.Line(i), st.Skipped
	if s == nil {
		t.Fatalf("%s: not skipped: %+v", line, st)
	}
	for k := range p.Ops {
		if p.Ops[k].Verb == zero.Norm && s.Line != p.Line(k) {
			t.Errorf("%s: skipped at line %q, the norm is %q", line, s.Line, p.Line(k))
		}
	}
	flat, _, known := pr.Layout.Lookup(s.Param)
	if !known || s.What != "its gradient is NaN" || s.Rank < 0 || s.Rank >= p.Mesh.World() {
		t.Fatalf("%s: skipped for %+v", line, *s)
	}
	// A gradient reduced over all ranks goes nowhere else: there the place is exact.
	last := p.Windows.Count - 1
	if op := &p.Ops[i]; op.Verb == zero.Reduce && op.Win == last && p.Mesh.Size(shard.Replicate) == 1 && (s.Rank != faulty || flat != op.Flat) {
		t.Errorf("%s: skipped for %+v, the NaN was put on rank %d", line, *s, faulty)
	}
}

// An infinite gradient is called that, with the rank and the parameter in which it lies.
func TestInfinityIsNamed(t *testing.T) {
	leaks(t)
	j := cell{Stage: 2, Ranks: 2}.config(oddJob(&odd{vocab: 31, dim: 7, layers: 2}, 2, optim.DefaultAdamW()))
	dev := &spoiler{with: float32(math.Inf(1))}
	w := mustCrew(t, j, seams{device: func(r int, d device.Device) device.Device {
		if r == 0 {
			return d
		}
		dev.Device = d
		return dev
	}})
	pr := w.engines[1].Program()
	for i := range pr.Train.Ops {
		op := &pr.Train.Ops[i]
		if op.Verb != zero.Reduce || pr.Layout.Flats[op.Flat].Name != "table" {
			continue
		}
		dev.arm(pr.Train.Line(i), outputs(pr, i, 1))
		st := w.mustStep(t, 1)
		if s := st.Skipped; s == nil || s.Rank != 1 || s.Param != "table" || s.What != "its gradient is infinite" || !math.IsInf(st.Norm, 1) {
			t.Errorf("%s: %s", pr.Train.Line(i), report(st))
		}
		return
	}
	t.Error("the table is never reduced")
}

// A batch without a valid target has no mean: the step is skipped and says so.
func TestNoValidTarget(t *testing.T) {
	for _, c := range grid(1, 2) {
		leaks(t)
		j := c.config(job(t, "micro", 4, 1, 4, 0))
		w := mustCrew(t, j, seams{})
		before := w.hash(t)
		stats := make([]zero.Stats, j.Ranks)
		within(t, func() {
			errs := each(j.Ranks, func(r int) (err error) {
				micro := w.micro(r, 1)
				for _, b := range micro {
					for i := range b.Targets {
						b.Targets[i] = -1
					}
				}
				stats[r], err = w.engines[r].Step(context.Background(), micro, hyper(1))
				return err
			})
			if err := errors.Join(errs...); err != nil {
				t.Error(err)
			}
		})
		for r, st := range stats {
			if st.Skipped == nil || st.Skipped.Rank != -1 || st.Tokens != 0 {
				t.Errorf("%v: rank %d reports %s", c, r, report(st))
			}
		}
		if w.hash(t) != before {
			t.Errorf("%v: the state changed", c)
		}
	}
}
