package modeltest

import (
	"fmt"
	"math"
	"slices"

	"zeroshard/device"
	"zeroshard/models"
)

// guard is the elements of guard on each side of a window: a cache line and more.
const guard = 64

// Bits of memory that nobody has written: NaNs, so that arithmetic on them shows.
const (
	defaultGarbage = 0x7fc0_dead
	guardBits      = 0x7fc0_beef
)

// guarded is a window of memory with guards around it.
type guarded struct {
	all     []float32
	garbage uint32
}

func (l *Leaf) memory(n int) *guarded {
	m := &guarded{all: make([]float32, n+2*guard), garbage: l.Garbage}
	if m.garbage == 0 {
		m.garbage = defaultGarbage
	}
	for i := range m.all {
		m.all[i] = math.Float32frombits(guardBits)
	}
	m.set(math.Float32frombits(m.garbage))
	return m
}

func (m *guarded) len() int          { return len(m.all) - 2*guard }
func (m *guarded) values() []float32 { return m.all[guard : len(m.all)-guard] }

// buffer lets a write outside the window reach the guards.
func (m *guarded) buffer() device.Buffer { return device.Host(m.all).Slice(guard, len(m.all)-guard) }

func (m *guarded) set(v float32) {
	for i := range m.values() {
		m.values()[i] = v
	}
}

// unwritten is the number of elements that still hold garbage.
func (m *guarded) unwritten() (n int) {
	for _, v := range m.values() {
		if math.Float32bits(v) == m.garbage {
			n++
		}
	}
	return n
}

// intact says that nothing was written around the window.
func (m *guarded) intact() bool {
	for i := range guard {
		if math.Float32bits(m.all[i]) != guardBits || math.Float32bits(m.all[len(m.all)-1-i]) != guardBits {
			return false
		}
	}
	return true
}

// call is one call of a unit, and what it may read and must write.
type call struct {
	unit       models.Unit
	what       string
	in, saved  *guarded
	out, din   *guarded // nil: empty
	dout, work *guarded
	withGrads  bool
	inBackward bool
	partial    bool // a recompute: need not use its work space whole
	inputs     [][]float32
	written    []*guarded
}

func (x *call) outputs(m ...*guarded) { x.written = append(x.written, m...) }

func buffer(m *guarded) device.Buffer {
	if m == nil {
		return device.Buffer{}
	}
	return m.buffer()
}

// do makes the call and holds it to the contract: inputs unchanged, outputs written whole, nothing around them touched.
func (r *run) do(i int, x *call, f func(*models.Call) error) error {
	p, g := r.params(i, x)
	scale := []float32{r.Scale}
	c := &models.Call{K: r.Net, Key: r.Key.Sub(uint64(i)), Shape: r.Shape, Mode: r.mode, P: p, G: g, Add: r.adds(i),
		In: buffer(x.in), Out: buffer(x.out), DIn: buffer(x.din), DOut: buffer(x.dout), Saved: buffer(x.saved), Work: buffer(x.work),
		Tokens: device.Host(r.Tokens), Targets: device.Host(r.Targets), Loss: device.Host(r.loss), Scale: device.Host(scale)}
	if r.mode == models.Decode {
		c.Spans, c.Cache = device.Host(r.spans), buffer(r.caches[i])
	}
	x.inputs = append(x.inputs, x.in.values(), scale)
	if x.inBackward {
		x.inputs = append(x.inputs, x.dout.values(), x.saved.values())
	}
	before := make([][]float32, len(x.inputs))
	for j, v := range x.inputs {
		before[j] = slices.Clone(v)
	}
	tokens, targets := slices.Clone(r.Tokens), slices.Clone(r.Targets)

	if err := f(c); err != nil {
		return fmt.Errorf("modeltest: %s: %s: %w", x.unit.Name(), x.what, err)
	}
	for j, v := range x.inputs {
		if at := firstDifference(v, before[j]); at >= 0 {
			return fmt.Errorf("modeltest: %s: %s changed its input %d of %d at element %d", x.unit.Name(), x.what, j, len(before), at)
		}
	}
	if !slices.Equal(tokens, r.Tokens) || !slices.Equal(targets, r.Targets) {
		return fmt.Errorf("modeltest: %s: %s changed tokens or targets", x.unit.Name(), x.what)
	}
	return r.judge(i, x)
}

// adds says what Call.Add is for unit i: other units write gradients of a flat that it reads.
func (r *run) adds(i int) bool {
	reads, _ := r.units[i].Reads()
	return r.Add || slices.ContainsFunc(reads, func(f string) bool { return r.readers[f] > 1 })
}

func (r *run) judge(i int, x *call) error {
	for name, m := range map[string]*guarded{"In": x.in, "Saved": x.saved, "Work": x.work, "Out": x.out, "DIn": x.din, "DOut": x.dout} {
		if m != nil && !m.intact() {
			return fmt.Errorf("modeltest: %s: %s wrote outside %s of %d elements", x.unit.Name(), x.what, name, m.len())
		}
	}
	if r.mode == models.Decode && !r.caches[i].intact() {
		return fmt.Errorf("modeltest: %s: %s wrote outside Cache of %d elements", x.unit.Name(), x.what, r.caches[i].len())
	}
	for _, m := range x.written {
		if !m.intact() {
			return fmt.Errorf("modeltest: %s: %s wrote outside an output or gradient of %d elements", x.unit.Name(), x.what, m.len())
		}
		if n := m.unwritten(); n > 0 {
			return fmt.Errorf("modeltest: %s: %s left %d of %d elements of an output or gradient unwritten", x.unit.Name(), x.what, n, m.len())
		}
	}
	for name, m := range map[string]*guarded{"Work": x.work, "Saved": x.saved} {
		if n := m.unwritten(); n > 0 && !(x.partial && name == "Work") {
			r.waste = append(r.waste, fmt.Sprintf("%s: %s: %d of %d elements of %s are never written", x.unit.Name(), x.what, n, m.len(), name))
		}
	}
	return nil
}

// firstDifference is the first place where bits differ, or -1.
func firstDifference(a, b []float32) int {
	for i := range a {
		if math.Float32bits(a[i]) != math.Float32bits(b[i]) {
			return i
		}
	}
	return -1
}
