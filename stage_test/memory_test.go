package stagetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"zeroshard"
	"zeroshard/device"
	"zeroshard/memory"
	"zeroshard/shard"
	"zeroshard/zero"
)

// memoryCells are every stage on every world, and every option that moves bytes.
func memoryCells() []cell {
	worlds := []int{1, 2, 3, 4, 5, 8}
	if testing.Short() {
		worlds = worlds[:3]
	}
	cells := grid(worlds...)
	for stage := range 4 {
		cells = append(cells,
			cell{Stage: stage, Ranks: 2, Replicas: 1, Threads: 2, Recompute: 1},
			cell{Stage: stage, Ranks: 2, Replicas: 1, Threads: 1, Recompute: 2, Prefetch: 2},
			cell{Stage: stage, Ranks: 3, Replicas: 1, Threads: 1, Window: 1, KeepLast: true},
			cell{Stage: stage, Ranks: 4, Replicas: 2, Threads: 1, Prefetch: 1},
			cell{Stage: stage, Ranks: 8, Replicas: 4, Threads: 1},
			cell{Stage: stage, Ranks: 4, Replicas: 1, Threads: 1, Threshold: 100},
			cell{Stage: stage, Ranks: 2, Replicas: 1, Threads: 1, Threshold: 1 << 20},
		)
	}
	return cells
}

// ledger is a device that keeps its own account of what it gave out, and the memory itself, in the order of the calls.
type ledger struct {
	device.Device
	mems  []device.Mem
	total int64
}

func (d *ledger) Alloc(n int64) (device.Mem, error) {
	m, err := d.Device.Alloc(n)
	if err == nil {
		d.mems, d.total = append(d.mems, m), d.total+n
	}
	return m, err
}

// witness adds up spans by kind on its own, and notes the most that was ever live and when live bytes passed the reserved ones.
type witness struct {
	reserved   int64
	live, most memory.ByKind
	passed     string
}

func (o *witness) Reserve(_ string, n int64) error { o.reserved += n; return nil }
func (o *witness) Release(_ string, n int64)       { o.reserved -= n }
func (o *witness) End(s memory.Span)               { o.live[s.Kind] -= s.Bytes }

func (o *witness) Begin(s memory.Span) {
	o.live[s.Kind] += s.Bytes
	if o.live.Sum() > o.most.Sum() {
		o.most = o.live
	}
	if o.live.Sum() > o.reserved {
		o.passed = s.Name
	}
}

// The peak that the plan says is the peak that each device has given out, in all and by kind; what is live never passes what is
// reserved, and the hole is the rest. (train checks the cluster's own figures in each cell; here are the test's.)
func TestMemoryUsedIsPlanned(t *testing.T) {
	j0 := job(t, "micro", 8, 1, 16, 0)
	for _, c := range memoryCells() {
		t.Run(c.String(), func(t *testing.T) {
			j := c.config(j0)
			ledgers, witnesses := make([]*ledger, c.Ranks), make([]*witness, c.Ranks)
			for r := range c.Ranks {
				ledgers[r], witnesses[r] = &ledger{}, &witness{}
			}
			pr, err := zeroshard.Plan(j)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := train(j, zeroshard.WithDevice(func(r int, d device.Device) device.Device {
				ledgers[r].Device = d
				return ledgers[r]
			}), zeroshard.WithObservers(func(r int) []memory.Observer { return []memory.Observer{witnesses[r]} })); err != nil {
				t.Fatal(err)
			}
			cost := pr.Cost()
			if want := stateBytes(sizesOf(j), c.Stage, zero.FP32); cost.ModelState != want {
				t.Errorf("model state of %d bytes, the formula with padding gives %d", cost.ModelState, want)
			}
			for r := range c.Ranks {
				if got := ledgers[r].total; got != cost.Peak() {
					t.Errorf("rank %d: the device gave %d bytes, %d were planned", r, got, cost.Peak())
				}
				if o := witnesses[r]; o.most != cost.Live || o.most.Sum()+cost.Hole != cost.Peak() || o.passed != "" {
					t.Errorf("rank %d: at most %v live, planned %v with a hole of %d; passed at %q", r, o.most, cost.Live, cost.Hole, o.passed)
				}
			}
			t.Logf("each rank %d bytes: %v", cost.Peak(), cost.ByKind())
		})
	}
}

// grain is the bytes at which places start. It divides a page, so that what holds for grains holds for pages.
const grain = 512

// Arenas are tight: in one step every 512 bytes of the transient arena are written, and every 512 bytes of the resident arena change,
// but for padding: grains in which no element of a parameter lies, whose number follows from the layout. And what was in the
// transient arena before a step does not matter.
func TestMemoryArenasAreTight(t *testing.T) {
	for _, c := range []cell{
		{Stage: 0, Ranks: 1, Replicas: 1}, {Stage: 0, Ranks: 2, Replicas: 1}, {Stage: 1, Ranks: 4, Replicas: 1, Window: 1},
		{Stage: 2, Ranks: 3, Replicas: 1, Prefetch: 1}, {Stage: 3, Ranks: 2, Replicas: 1, Prefetch: 2},
		{Stage: 3, Ranks: 4, Replicas: 1, Recompute: 1}, {Stage: 3, Ranks: 8, Replicas: 1},
		{Stage: 3, Ranks: 4, Replicas: 2, Threshold: 100}, {Stage: 3, Ranks: 5, Replicas: 1},
	} {
		t.Run(c.String(), func(t *testing.T) {
			j := c.config(job(t, "micro", 8, 1, 16, 0))
			ledgers := make([]*ledger, c.Ranks)
			w := mustCrew(t, j, seams{device: func(r int, d device.Device) device.Device {
				ledgers[r] = &ledger{Device: d}
				return ledgers[r]
			}})
			clean := mustCrew(t, j, seams{})
			w.mustStep(t, 1)
			before := make([][]byte, c.Ranks)
			for r, l := range ledgers {
				before[r] = bytes.Clone(bytesOf(l.mems[0]))
				transient := bytesOf(l.mems[1])
				for i := range transient {
					transient[i] = 0xa5
				}
			}
			w.mustStep(t, 2)
			for r, l := range ledgers {
				resident(t, w, r, before[r], bytesOf(l.mems[0]))
				transient(t, w, r, bytesOf(l.mems[1]))
			}
			clean.mustStep(t, 1)
			clean.mustStep(t, 2)
			if w.hash(t) != clean.hash(t) {
				t.Error("what lay in the transient arena has changed the result")
			}
		})
	}
}

func bytesOf(m device.Mem) []byte { return m.(device.HostMem).Bytes() }

// resident checks that each grain of a rank's resident arena with an element of a parameter in it has changed.
func resident(t *testing.T, w *crew, rank int, before, after []byte) {
	t.Helper()
	pr := w.engines[rank].Program()
	p, padding, total := pr.Train, 0, int64(0)
	for i := range p.Bufs {
		b := &p.Bufs[i]
		if !b.Resident {
			continue
		}
		total += b.Bytes()
		index := p.Mesh.Coord(rank, shard.Shards)
		owned := pr.Layout.Shard(b.Flat, index, p.Mesh)
		if b.Len == pr.Layout.FullLen(b.Flat, p.Mesh) {
			owned = shard.Range{Lo: 0, Hi: pr.Layout.Flats[b.Flat].Len}
		}
		for at := 0; at < b.Len; at += grain / 4 {
			lo := b.Off + int64(at)*4
			used := false
			for range pr.Layout.Flats[b.Flat].Pieces(shard.Range{Lo: owned.Lo + at, Hi: min(owned.Lo+at+grain/4, owned.Hi)}) {
				used = true
			}
			if !used {
				padding += grain
			} else if bytes.Equal(before[lo:lo+grain], after[lo:lo+grain]) {
				t.Errorf("rank %d: %s does not change at byte %d of %d", rank, b.Name, at*4, b.Bytes())
			}
		}
	}
	if want := paddingOf(w.configs[rank], rank); padding != want {
		t.Errorf("rank %d: %d bytes of padding at rest, the layout gives %d", rank, padding, want)
	}
	if total != p.Resident || int64(len(after)) != p.Resident {
		t.Errorf("rank %d: %d bytes in the buffers of a resident arena of %d, planned %d", rank, total, len(after), p.Resident)
	}
}

// paddingOf is the whole grains without an element in what rests on a rank, in bytes: at the end of a full buffer, and of the shards of
// the last ranks. (The micro model has no parameter without elements, so every grain before the end has one.)
func paddingOf(c zeroshard.Config, rank int) (bytes int) {
	index := rank % (c.Ranks / max(c.Replicas, 1))
	for _, f := range sizesOf(c) {
		if f.frozen {
			continue
		}
		content := contentOf(c, f)
		pad := func(sharded bool) int {
			if sharded {
				return f.shard - max(0, min(content-index*f.shard, f.shard))
			}
			return f.full - content
		}
		bytes += 4 * (pad(c.Stage >= 3 && !f.kept) + pad(c.Stage >= 2) + 2*pad(c.Stage >= 1))
	}
	return bytes
}

// contentOf is the elements of a flat up to the end of its last grain: what it would be alone on one rank.
func contentOf(c zeroshard.Config, f flatSize) int {
	for _, one := range flatSizes(c.Model, c.PersistenceThreshold, 1, 1) {
		if one.numel == f.numel && one.kept == f.kept {
			return one.full
		}
	}
	panic("no such flat")
}

// transient checks that the buffers which this rank's ops write lie side by side without a gap, up to the end of the arena, and that
// each grain of theirs was written.
func transient(t *testing.T, w *crew, rank int, arena []byte) {
	t.Helper()
	pr := w.engines[rank].Program()
	p := pr.Train
	covered := make([]string, p.Transient/grain)
	for i := range p.Ops {
		for _, b := range written(p, i, rank) {
			for at := p.Bufs[b].Off; at < p.Bufs[b].Off+p.Bufs[b].Bytes(); at += grain {
				covered[at/grain] = p.Bufs[b].Name
			}
		}
	}
	pattern := bytes.Repeat([]byte{0xa5}, grain)
	idle := hasIdleSlot(p, rank)
	for g, name := range covered {
		switch got := arena[g*grain : (g+1)*grain]; {
		case name == "" && !idle:
			t.Fatalf("rank %d: no buffer lies at byte %d of the transient arena of %d", rank, g*grain, p.Transient)
		case name != "" && bytes.Equal(got, pattern):
			t.Errorf("rank %d: nothing wrote byte %d of the transient arena, where %s lies", rank, g*grain, name)
		}
	}
	if pr.Transient != p.Transient || int64(len(arena)) != p.Transient {
		t.Errorf("rank %d: a transient arena of %d bytes, a step needs %d", rank, len(arena), p.Transient)
	}
}

// written lists the transient buffers that an op writes on a rank.
func written(p *zero.Plan, i, rank int) (out []int) {
	op := &p.Ops[i]
	if op.Slot >= 0 && p.Leaves(rank)[op.Win*p.Windows.Size+op.Slot] < 0 {
		return nil
	}
	a := &op.Args
	bufs := []int{a.Out, a.DIn, a.Saved, a.Work, a.Dst.Buf, a.Scalars}
	if op.Verb == zero.Backward || op.Verb == zero.LossGrad || op.Verb == zero.Clear {
		bufs = append(bufs, a.G...)
	}
	if op.Verb == zero.Feed {
		bufs = append(bufs, a.Tokens, a.Targets)
	}
	for _, r := range a.Outs {
		bufs = append(bufs, r.Buf)
	}
	for _, b := range bufs {
		if b >= 0 && !p.Bufs[b].Resident {
			out = append(out, b)
		}
	}
	return out
}

func hasIdleSlot(p *zero.Plan, rank int) bool {
	for _, leaf := range p.Leaves(rank) {
		if leaf < 0 {
			return true
		}
	}
	return false
}

// A model larger than the device: stage 0 is refused before a byte is reserved, with a table of who needs what and with settings that
// fit; stage 3 trains it within the limit to the bits that stage 0 gives without one.
func TestModelLargerThanTheDevice(t *testing.T) {
	leaks(t)
	preset, seq := "tiny", 32
	if testing.Short() {
		preset, seq = "micro", 16
	}
	j := cell{Stage: 0, Ranks: 4}.config(job(t, preset, 8, 1, seq, 0))
	want, err := train(j)
	if err != nil {
		t.Fatal(err)
	}
	need := func(c zeroshard.Config) int64 {
		pr, err := zeroshard.Plan(c)
		if err != nil {
			t.Fatal(err)
		}
		return pr.Cost().Peak()
	}
	j3 := j
	j3.Stage = 3
	most, least := need(j), need(j3)
	j.DeviceMemory = (most + least) / 2

	wired := false
	_, err = train(j, zeroshard.WithDevice(func(_ int, d device.Device) device.Device { wired = true; return d }))
	var fit *zeroshard.FitError
	if !errors.As(err, &fit) || !errors.Is(err, memory.ErrLimit) || wired {
		t.Fatalf("stage 0 in %d bytes, it needs %d: %v; ranks were made: %t", j.DeviceMemory, most, err, wired)
	}
	if fit.Peak != most || fit.Limit != j.DeviceMemory || len(fit.Stages) != 4 || len(fit.Nearest) == 0 {
		t.Errorf("the refusal is %+v", *fit)
	}
	for _, c := range append(fit.Stages, fit.Nearest...) {
		if peak := strconv.FormatInt(c.Cost.Peak(), 10); !strings.Contains(err.Error(), peak) {
			t.Errorf("%s needs %s bytes, which is not in\n%v", c.Setting, peak, err)
		}
	}
	for _, c := range fit.Nearest {
		n := settings(t, j, c.Setting)
		if need(n) != c.Cost.Peak() || c.Cost.Peak() > j.DeviceMemory {
			t.Errorf("%s is said to need %d bytes of %d, and needs %d", c.Setting, c.Cost.Peak(), j.DeviceMemory, need(n))
		}
		if got, err := train(n); err != nil || !got.equal(want) {
			t.Errorf("%s, which should fit:\ngot  %v (%v)\nwant %v", c.Setting, got, err, want)
		}
	}
	for _, limit := range []int64{j.DeviceMemory, least} { // to the last byte
		j3.DeviceMemory = limit
		if got, err := train(j3); err != nil || !got.equal(want) {
			t.Errorf("stage 3 in %d bytes, it needs %d:\ngot  %v (%v)\nwant %v", limit, least, got, err, want)
		}
	}
	j3.DeviceMemory = least - 1
	if _, err := zeroshard.Local(context.Background(), j3); !errors.Is(err, memory.ErrLimit) {
		t.Errorf("stage 3 in a byte less than it needs: %v", err)
	}
}

// settings reads flags as a refusal writes them.
func settings(t *testing.T, j zeroshard.Config, flags string) zeroshard.Config {
	t.Helper()
	words := strings.Fields(flags)
	for i := 0; i+1 < len(words); i += 2 {
		n, err := strconv.Atoi(words[i+1])
		switch {
		case words[i] == "--stage" && err == nil:
			j.Stage = n
		case words[i] == "--ranks" && err == nil:
			j.Ranks = n
		case words[i] == "--recompute" && words[i+1] == "all":
			j.Recompute = 1
		case words[i] == "--recompute" && err == nil:
			j.Recompute = n
		default:
			t.Fatal(fmt.Errorf("what does %q mean in %q?", words[i], flags))
		}
	}
	return j
}
