package modeltest

import (
	"fmt"
	"slices"

	"zeroshard/device"
	"zeroshard/kernels"
	"zeroshard/models"
	"zeroshard/prng"
	"zeroshard/shard"
)

// Leaf is a model and one leaf of data, to be run without an engine.
type Leaf struct {
	Net             kernels.Net
	Model           models.Model
	Shape           models.Shape
	Key             prng.Key // of the leaf; unit i gets Key.Sub(i)
	Params          map[string][]float32
	Tokens, Targets []int32
	Scale           float32 // of the gradient
	Options
}

// Options change how Train calls the units, and should not change what it returns.
type Options struct {
	Recompute bool    // run each Forward again, without Out, before Backward, and demand the same Saved
	Add       bool    // let every unit add its gradients to Prefill; else only those of shared flats add, to zeros
	Prefill   float32 // what gradients hold before
	Garbage   uint32  // bits of memory that nobody has written; 0 = a NaN
}

// Result is what a leaf gives.
type Result struct {
	Loss  float64              // sum over valid targets
	Valid int                  // their number
	Grads map[string][]float32 // of parameters that are not frozen; nil in Eval
}

// NewLeaf returns a leaf with random tokens and targets under vocab, and with the model's initial values (zeros, if it is no
// models.Initializer) plus 0.1 times a normal number: far enough from special points for gradients to show.
func NewLeaf(net kernels.Net, m models.Model, s models.Shape, vocab int) *Leaf {
	key := prng.New(1)
	l := &Leaf{Net: net, Model: m, Shape: s, Key: key.Named("leaf"), Params: map[string][]float32{}, Scale: 1,
		Tokens: make([]int32, s.Rows()), Targets: make([]int32, s.Rows())}
	for i := range l.Tokens {
		l.Tokens[i] = int32(key.Named("tokens").Intn(uint64(i), vocab))
		l.Targets[i] = int32(key.Named("targets").Intn(uint64(i), vocab))
	}
	for _, f := range m.Flats() {
		for _, p := range f.Params {
			v, noise := make([]float32, p.Len()), make([]float32, p.Len())
			if init, ok := m.(models.Initializer); ok {
				init.Init(key.Named("init"), p, 0, v)
			}
			key.Named("noise").Named(p.Name).FillNormal(noise, 0)
			for i := range v {
				v[i] += 0.1 * noise[i]
			}
			l.Params[p.Name] = v
		}
	}
	return l
}

// Train runs forward and backward.
func (l *Leaf) Train() (*Result, error) {
	r := l.begin(models.Train)
	if err := r.forward(); err != nil {
		return nil, err
	}
	if err := r.backward(); err != nil {
		return nil, err
	}
	res := r.result()
	res.Grads = map[string][]float32{}
	for name, g := range r.grads {
		res.Grads[name] = slices.Clone(g.values())
	}
	return res, nil
}

// Eval runs forward for the loss alone.
func (l *Leaf) Eval() (*Result, error) {
	r := l.begin(models.Eval)
	if err := r.forward(); err != nil {
		return nil, err
	}
	return r.result(), nil
}

// Logits runs forward and returns what the last unit writes.
func (l *Leaf) Logits() ([]float32, error) {
	r := l.begin(models.Logits)
	if err := r.forward(); err != nil {
		return nil, err
	}
	return slices.Clone(r.outs[len(r.outs)-1].values()), nil
}

// run is one pass over the units.
type run struct {
	*Leaf
	mode    models.Mode
	units   []models.Unit
	readers map[string]int // units that read a flat
	flats   map[string]shard.FlatSpec
	grads   map[string]*guarded
	outs    []*guarded // of each unit
	saved   []*guarded
	dout    *guarded // what backward has come to
	loss    []float64
	waste   []string // windows of which a part was never written
	spans   []int32
	caches  []*guarded // of each unit
}

func (l *Leaf) begin(mode models.Mode) *run {
	r := &run{Leaf: l, mode: mode, units: l.Model.Units(), readers: map[string]int{}, flats: map[string]shard.FlatSpec{},
		grads: map[string]*guarded{}, loss: make([]float64, 2)}
	for _, u := range r.units {
		reads, _ := u.Reads()
		for _, f := range reads {
			r.readers[f]++
		}
	}
	for _, f := range l.Model.Flats() {
		r.flats[f.Name] = f
		for _, p := range f.Params {
			if !p.Frozen {
				r.grads[p.Name] = l.memory(p.Len())
			}
		}
	}
	r.prefill()
	return r
}

// prefill sets the gradients that some unit adds to.
func (r *run) prefill() {
	for i, u := range r.units {
		if !r.adds(i) {
			continue
		}
		reads, _ := u.Reads()
		for _, f := range reads {
			for _, p := range r.flats[f].Params {
				if g := r.grads[p.Name]; g != nil {
					g.set(r.Prefill)
				}
			}
		}
	}
}

func (r *run) result() *Result { return &Result{Loss: r.loss[0], Valid: int(r.loss[1])} }

func (r *run) last(i int) bool { return i == len(r.units)-1 }

func (r *run) forward() error {
	for i, u := range r.units {
		size := u.Sizes(r.Shape, r.mode)
		r.outs = append(r.outs, r.memory(size.Out))
		r.saved = append(r.saved, r.memory(size.Saved))
		x := &call{unit: u, what: "Forward", in: r.input(i), saved: r.saved[i], work: r.memory(size.Work)}
		x.outputs(r.outs[i])
		if r.last(i) && r.mode == models.Train {
			if i > 0 {
				r.dout = r.memory(r.outs[i-1].len())
				x.din = r.dout
				x.outputs(x.din)
			}
			x.withGrads = true
		}
		x.out = r.outs[i]
		if err := r.do(i, x, u.Forward); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) backward() error {
	for i := len(r.units) - 2; i >= 0; i-- {
		u := r.units[i]
		if r.Recompute {
			if err := r.recompute(i); err != nil {
				return err
			}
		}
		x := &call{unit: u, what: "Backward", in: r.input(i), saved: r.saved[i], work: r.memory(u.Sizes(r.Shape, r.mode).BackWork),
			dout: r.dout, withGrads: true, inBackward: true}
		if i > 0 {
			x.din = r.memory(r.outs[i-1].len())
			x.outputs(x.din)
		}
		if err := r.do(i, x, u.Backward); err != nil {
			return err
		}
		r.dout = x.din
	}
	return nil
}

// recompute replaces unit i's saved values by those of a Forward without Out.
func (r *run) recompute(i int) error {
	u := r.units[i]
	size := u.Sizes(r.Shape, r.mode)
	again := r.memory(size.Saved)
	x := &call{unit: u, what: "Forward (recompute)", in: r.input(i), saved: again, work: r.memory(size.Work), partial: true}
	if err := r.do(i, x, u.Forward); err != nil {
		return err
	}
	if at := firstDifference(again.values(), r.saved[i].values()); at >= 0 {
		return fmt.Errorf("modeltest: %s: recomputed Saved differs at element %d of %d", u.Name(), at, again.len())
	}
	r.saved[i] = again
	return nil
}

func (r *run) input(i int) *guarded {
	if i == 0 {
		return r.memory(0)
	}
	return r.outs[i-1]
}

// params returns Call.P and Call.G of unit i, and what of them is an output.
func (r *run) params(i int, x *call) (p, g []device.Buffer) {
	forward, backward := r.units[i].Reads()
	for _, name := range forward {
		hidden := x.inBackward && !slices.Contains(backward, name)
		for _, param := range r.flats[name].Params {
			var pb, gb device.Buffer
			if !hidden {
				pb = device.Host(r.Params[param.Name])
				x.inputs = append(x.inputs, r.Params[param.Name])
			}
			if grad := r.grads[param.Name]; x.withGrads && grad != nil {
				gb = grad.buffer()
				x.outputs(grad)
			}
			p, g = append(p, pb), append(g, gb)
		}
	}
	return p, g
}
