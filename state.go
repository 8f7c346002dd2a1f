package zeroshard

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"slices"

	"gorgonia.org/tensor"

	"zeroshard/shard"
	"zeroshard/zero"
)

// Params lists the names of the parameters, in byte order.
func (c *Cluster) Params() []string {
	var names []string
	for _, f := range c.program.Layout.Flats {
		for _, s := range f.Segs {
			names = append(names, s.Param.Name)
		}
	}
	slices.Sort(names)
	return names
}

func (c *Cluster) param(name string) (shard.Param, error) {
	f, s, ok := c.program.Layout.Lookup(name)
	if !ok {
		return shard.Param{}, fmt.Errorf("%w: %q", zero.ErrParameter, name)
	}
	return c.program.Layout.Flats[f].Segs[s].Param, nil
}

// Full returns a copy of a whole parameter, with its shape. It is collective and moves the slices to rank 0.
func (c *Cluster) Full(ctx context.Context, name string) (*tensor.Dense, error) {
	if err := c.ready(ctx, "Full", false); err != nil {
		return nil, err
	}
	p, err := c.param(name)
	if err != nil {
		return nil, err
	}
	if p.Len() == 0 {
		return nil, fmt.Errorf("%w: %q of shape %v has no elements, which a tensor cannot hold", ErrValue, name, p.Shape)
	}
	v, err := c.read(ctx, p, zero.Master)
	if err != nil {
		return nil, err
	}
	return tensor.New(tensor.WithShape(p.Shape...), tensor.WithBacking(v)), nil
}

// Set gives a parameter new values on all ranks: a copy of v, which must have the parameter's shape and hold float32 (else the error
// is ErrValue). Slices and transposed tensors are copied as they read, not as they lie. It is collective.
func (c *Cluster) Set(ctx context.Context, name string, v *tensor.Dense) error {
	if err := c.ready(ctx, "Set", false); err != nil {
		return err
	}
	p, err := c.param(name)
	if err != nil {
		return err
	}
	if v == nil {
		return fmt.Errorf("%w: %q is given no tensor", ErrValue, name)
	}
	if v.Dtype() != tensor.Float32 || !slices.Equal([]int(v.Shape()), p.Shape) {
		return fmt.Errorf("%w: %q is float32 of shape %v, it is given %v of shape %v", ErrValue, name, p.Shape, v.Dtype(), []int(v.Shape()))
	}
	values := byRows(v)
	return c.each(func(_ int, rk *rank) error {
		return rk.engine.Write(name, zero.Master, func(lo int, dst []float32) error {
			copy(dst, values[lo:])
			return nil
		})
	})
}

// byRows copies a tensor's elements, last index fastest, whatever its strides are. (Materialize cannot be relied on for that: it leaves
// column-major tensors, and slices of transposed ones, in the order in which they lie.)
func byRows(v *tensor.Dense) []float32 {
	if v.IsScalar() {
		return []float32{v.ScalarValue().(float32)}
	}
	out := make([]float32, v.Shape().TotalSize())
	if len(out) == 0 {
		return nil // v.Data would panic
	}
	data, shape, strides := v.Data().([]float32), v.Shape(), v.Strides()
	index := make([]int, len(shape))
	at := 0
	for i := range out {
		out[i] = data[at]
		for d := len(shape) - 1; d >= 0; d-- {
			index[d]++
			at += strides[d]
			if index[d] < shape[d] {
				break
			}
			at -= shape[d] * strides[d]
			index[d] = 0
		}
	}
	return out
}

// Piece returns what rests of a parameter on a rank as a view, not a copy: whole and with its shape where the strategy keeps it
// whole, else this rank's elements [from, from+len) in one dimension; nil where the rank has none in device memory. It is not collective. Do not use the
// view during a call of the cluster, nor after Close; who writes to it must write the same to the copies of other ranks.
func (c *Cluster) Piece(rank int, name string) (view *tensor.Dense, from int, err error) {
	if c.closed {
		return nil, 0, fmt.Errorf("%w: Piece came after Close", zero.ErrClosed)
	}
	p, err := c.param(name)
	if err != nil {
		return nil, 0, err
	}
	if rank < 0 || rank >= len(c.ranks) {
		return nil, 0, fmt.Errorf("%w: there is no rank %d", zero.ErrOptions, rank)
	}
	c.cached, c.viewed = nil, true
	v, from, err := c.ranks[rank].engine.View(name, zero.Master)
	if err != nil || len(v) == 0 {
		return nil, from, err
	}
	shape := p.Shape
	if len(v) != p.Len() {
		shape = []int{len(v)}
	}
	return tensor.New(tensor.WithShape(shape...), tensor.WithBacking(v)), from, nil
}

// read brings a parameter's values or state together on the host.
func (c *Cluster) read(ctx context.Context, p shard.Param, state int) ([]float32, error) {
	v := make([]float32, p.Len())
	err := c.each(func(r int, rk *rank) error {
		if r == 0 {
			return rk.engine.Read(ctx, p.Name, state, v)
		}
		return rk.engine.Read(ctx, p.Name, state, nil)
	})
	return v, err
}

// StateSHA256 identifies the state of a run: the hash over, for each parameter in byte order of its name, the master weights, then
// the optimizer's values in the order of its States (none in a cluster for inference), as fp32 little-endian without padding. It is collective.
func (c *Cluster) StateSHA256(ctx context.Context) (string, error) {
	if err := c.ready(ctx, "StateSHA256", false); err != nil {
		return "", err
	}
	h := sha256.New()
	states := len(c.config.Optimizer.States())
	if c.config.Inference {
		states = 0
	}
	for _, name := range c.Params() {
		p, err := c.param(name)
		if err != nil {
			return "", err
		}
		last := states
		if p.Frozen {
			last = 0
		}
		for s := range last + 1 {
			v, err := c.read(ctx, p, zero.Master+s)
			if err != nil {
				return "", err
			}
			if err := writeFloats(h, v); err != nil {
				return "", err
			}
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func writeFloats(w io.Writer, v []float32) error {
	buf := make([]byte, 0, 4096)
	for len(v) > 0 {
		n := min(len(v), cap(buf)/4)
		buf = buf[:0]
		for _, f := range v[:n] {
			buf = binary.LittleEndian.AppendUint32(buf, math.Float32bits(f))
		}
		if _, err := w.Write(buf); err != nil {
			return err
		}
		v = v[n:]
	}
	return nil
}
