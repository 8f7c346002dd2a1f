package zeroshard

import (
	"context"
	"fmt"

	"zeroshard/checkpoint"
	kcpu "zeroshard/kernels/cpu"
	"zeroshard/zero"
)

// Sources is what each rank saves, for checkpoint.Saver and Store.Save. They may be read between calls of the cluster only.
func (c *Cluster) Sources() []checkpoint.Source {
	states := c.savedStates()
	out := make([]checkpoint.Source, len(c.ranks))
	for r, rk := range c.ranks {
		s := &source{engine: rk.engine, states: map[string]int{checkpoint.Weights: zero.Master}}
		for i, name := range states {
			s.states[name] = i
		}
		for _, h := range rk.engine.Share() {
			p := checkpoint.Piece{Param: h.Param, State: checkpoint.Weights, From: h.From, Len: h.Len, Streamed: h.Tier == zero.FileTier}
			if h.State != zero.Master {
				p.State = states[h.State]
			}
			s.pieces = append(s.pieces, p)
		}
		out[r] = s
	}
	return out
}

// source is what one rank saves.
type source struct {
	engine *zero.Engine
	states map[string]int
	pieces []checkpoint.Piece
}

func (s *source) Pieces() []checkpoint.Piece { return append([]checkpoint.Piece(nil), s.pieces...) }

func (s *source) Read(p checkpoint.Piece, lo int, dst []float32) error {
	return s.engine.ReadHere(p.Param, s.states[p.State], p.From+lo, dst)
}

// Manifest is the part of a step's manifest that the cluster knows: parameters, optimizer state, who saves. The caller adds the rest.
func (c *Cluster) Manifest(at checkpoint.Position) checkpoint.Manifest {
	t := c.program.Plans()[0] // all have the same strategy
	return checkpoint.Manifest{Position: at, Params: c.savedParams(), States: c.savedStates(),
		World: checkpoint.World{Ranks: c.config.Ranks, Replicas: c.config.Replicas, Strategy: t.Strategy.Name, Plan: c.program.SHA256(), Kernels: KernelPath()}}
}

// KernelPath names the path of the default arithmetic on this machine: "avx512", "avx2", "neon" or "portable". All but the last give the same
// bits (docs/numerics.md).
func KernelPath() string { return kcpu.Paths()[0] }

func (c *Cluster) savedParams() (list []checkpoint.Param) {
	for _, f := range c.program.Layout.Flats {
		for _, s := range f.Segs {
			p := s.Param
			list = append(list, checkpoint.Param{Name: p.Name, Shape: p.Shape, NoDecay: p.NoDecay, Frozen: p.Frozen})
		}
	}
	return list
}

// savedStates is the optimizer's state, of which a cluster for inference has none.
func (c *Cluster) savedStates() []string {
	if c.config.Inference {
		return nil
	}
	return c.config.Optimizer.States()
}

// Restore sets the whole state, parameters and the optimizer's, from a saved step, whoever saved it: each rank reads what rests on it.
// The error wraps checkpoint.ErrMismatch, and nothing is changed, where the step is of another model or optimizer. Another error (a damaged
// file) ends the cluster. It is collective.
func (c *Cluster) Restore(ctx context.Context, s *checkpoint.Saved) error {
	if err := c.ready(ctx, "Restore", false); err != nil {
		return err
	}
	if c.config.Inference {
		return fmt.Errorf("%w: the cluster was made for inference and holds parameters alone: Load them (checkpoint.Saved.Read)", zero.ErrOptions)
	}
	states := c.savedStates()
	if err := s.Manifest.Fits(c.savedParams(), states); err != nil {
		return err
	}
	names := append([]string{checkpoint.Weights}, states...)
	return c.each(func(_ int, rk *rank) error {
		if err := restore(ctx, rk.engine, func(h zero.Held, lo int, dst []float32) error {
			return s.Read(h.Param, names[h.State-zero.Master], h.From+lo, dst)
		}); err != nil {
			return rk.engine.Fail(err)
		}
		return nil
	})
}

// restoreChunk is the elements that a rank reads at a time.
const restoreChunk = 1 << 20

// restore reads all that rests on a rank, in the order in which ranks save, so that files are read from start to end: straight into its
// place where the CPU can reach that.
func restore(ctx context.Context, e *zero.Engine, read func(h zero.Held, lo int, dst []float32) error) error {
	var staging []float32
	for _, h := range e.Rests() {
		place, err := e.Place(h)
		if err != nil {
			return err
		}
		if place == nil && staging == nil {
			staging = make([]float32, restoreChunk)
		}
		for lo := 0; lo < h.Len; lo += restoreChunk {
			if ctx.Err() != nil {
				return fmt.Errorf("zeroshard: Restore: %w", context.Cause(ctx))
			}
			n := min(restoreChunk, h.Len-lo)
			if place != nil {
				if err := read(h, lo, place[lo:lo+n]); err != nil {
					return err
				}
				continue
			}
			if err := read(h, lo, staging[:n]); err != nil {
				return err
			}
			if err := e.WriteHere(h.Param, h.State, h.From+lo, staging[:n]); err != nil {
				return err
			}
		}
	}
	return nil
}

// SaveBytes is what a rank of a program writes when it saves, at most, and the host memory that a checkpoint.Saver takes for it meanwhile,
// beside what the run holds: a copy of what is saved, without what rests in files, and the buffers of its file.
func SaveBytes(pr *zero.Program) (written, memory int64) {
	all, copied := pr.SaveBytes()
	return all, copied + checkpoint.BufferBytes
}
