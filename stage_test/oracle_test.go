package stagetest

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"slices"

	"zeroshard"
	"zeroshard/device"
	"zeroshard/internal/exact"
	"zeroshard/kernels"
	"zeroshard/models"
	"zeroshard/optim"
	"zeroshard/prng"
	"zeroshard/shard"
	"zeroshard/zero"
)

// oracle trains without plan, shards, streams or ranks: whole parameters in Go slices, and the tree over leaves written as the
// recursion that it is. What the engine computes must equal it bit for bit.
type oracle struct {
	c      zeroshard.Config
	k      kernels.Backend
	params []shard.Param            // in the order of specs
	specs  map[string][]shard.Param // by name of the flat
	value  map[string][]float32
	states map[string][][]float32
}

func newOracle(c zeroshard.Config, k kernels.Backend) *oracle {
	o := &oracle{c: c, k: k, specs: map[string][]shard.Param{}, value: map[string][]float32{}, states: map[string][][]float32{}}
	key := prng.New(c.Seed).Named("init")
	for _, spec := range c.Model.Flats() {
		o.specs[spec.Name] = spec.Params
		for _, p := range spec.Params {
			o.params = append(o.params, p)
			o.value[p.Name] = make([]float32, p.Len())
			c.Model.(models.Initializer).Init(key, p, 0, o.value[p.Name])
			for range c.Optimizer.States() {
				if p.Frozen {
					break
				}
				o.states[p.Name] = append(o.states[p.Name], make([]float32, p.Len()))
			}
		}
	}
	return o
}

type gradients map[string][]float32

// leaf is one micro-batch: forward, then backward, into fresh gradients.
func (o *oracle) leaf(step, leaf int, b zero.Batch, loss []float64) gradients {
	g := gradients{}
	for _, p := range o.params {
		if !p.Frozen {
			g[p.Name] = make([]float32, p.Len())
		}
	}
	shape := models.Shape{Batch: o.c.MicroBatch, Seq: o.c.Seq}
	units := o.c.Model.Units()
	calls := make([]*models.Call, len(units))
	floats := func(n int) device.Buffer { return device.Host(make([]float32, n)) }
	for i, u := range units {
		z := u.Sizes(shape, models.Train)
		c := &models.Call{K: o.k, Key: prng.New(o.c.Seed).Named("dropout").Sub(uint64(step)).Sub(uint64(leaf)).Sub(uint64(i)), Shape: shape,
			Add: true, Saved: floats(z.Saved), Work: floats(max(z.Work, z.BackWork)), Tokens: device.Host(b.Tokens), Targets: device.Host(b.Targets)}
		reads, _ := u.Reads()
		for _, name := range reads {
			for _, p := range o.specs[name] {
				c.P, c.G = append(c.P, device.Host(o.value[p.Name])), append(c.G, device.Host(g[p.Name]))
			}
		}
		if i > 0 {
			c.In, c.DIn = calls[i-1].Out, floats(calls[i-1].Out.Len)
		}
		if calls[i] = c; i < len(units)-1 {
			c.Out = floats(z.Out)
		} else {
			c.Loss = device.Host(loss)
		}
		must(u.Forward(c))
	}
	for i := len(units) - 2; i >= 0; i-- {
		calls[i].DOut = calls[i+1].DIn
		must(units[i].Backward(calls[i]))
	}
	return g
}

// tree sums leaves [lo, hi): it splits at the largest power of two below their number.
func (o *oracle) tree(lo, hi int, leaf func(int) gradients) gradients {
	if hi-lo == 1 {
		return leaf(lo)
	}
	mid := lo + shard.Tree(hi-lo)
	a, b := o.tree(lo, mid, leaf), o.tree(mid, hi, leaf)
	for name := range a {
		for i := range a[name] {
			a[name][i] += b[name][i]
		}
	}
	return a
}

// step trains on one global batch and returns the mean loss and the norm.
func (o *oracle) step(h optim.Hyper, batch func(int) zero.Batch) (loss, norm float64) {
	losses := make([][]float64, o.c.GlobalBatch/o.c.MicroBatch)
	g := o.tree(0, len(losses), func(l int) gradients {
		losses[l] = make([]float64, 2)
		return o.leaf(h.Step, l, batch(l), losses[l])
	})
	var sum, tokens float64
	for _, l := range losses {
		sum, tokens = sum+l[0], tokens+l[1]
	}
	acc := make([]uint64, exact.Words)
	for _, p := range o.params {
		o.k.SumSquares(nil, device.Host(acc), device.Host(g[p.Name]), 1)
	}
	scale := 1 / tokens
	norm = math.Sqrt(exact.Round(acc)) * scale
	if o.c.Clip > 0 {
		scale *= min(1, o.c.Clip/(norm+1e-6))
	}
	control := device.Host([]float32{float32(scale), 0})
	for _, p := range o.params {
		if p.Frozen || p.Len() == 0 {
			continue
		}
		x := optim.Slice{P: device.Host(o.value[p.Name]), G: device.Host(g[p.Name]), Control: control, Decay: !p.NoDecay}
		for _, s := range o.states[p.Name] {
			x.States = append(x.States, device.Host(s))
		}
		must(o.c.Optimizer.Update(nil, o.k, h, x))
	}
	return sum / tokens, norm
}

// sha256 is state_sha256, written down a second time.
func (o *oracle) sha256() string {
	slices.SortFunc(o.params, func(a, b shard.Param) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	h := sha256.New()
	for _, p := range o.params {
		for _, v := range append([][]float32{o.value[p.Name]}, o.states[p.Name]...) {
			must(binary.Write(h, binary.LittleEndian, v))
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
