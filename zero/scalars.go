package zero

import (
	"math"
	"math/bits"

	"zeroshard/device"
	"zeroshard/internal/exact"
	"zeroshard/shard"
)

// Loss is a sum over tokens.
type Loss struct {
	Sum    float64
	Tokens int
}

// Mean is nats per token.
func (l Loss) Mean() float64 { return l.Sum / float64(l.Tokens) }

// Stats is what a step reports, equal on all ranks.
type Stats struct {
	Loss    float64 // mean over the valid tokens of the global batch
	Tokens  int     // their number
	Norm    float64 // of the mean gradient, before clipping
	Skipped *Skip   // nil, or why no rank updated
}

// Skip says why an update was skipped, on all ranks alike.
type Skip struct {
	Rank  int    // the first rank that met it; -1 where no token was valid
	Param string // the parameter in whose gradient it met it
	Line  string // the plan's line
	What  string // "a gradient is NaN", …
}

func top(slot int) int  { return bits.OnesCount(uint(slot)) }
func ones(slot int) int { return bits.TrailingZeros(^uint(slot)) }

// report copies results to the host.
func (x *exec) report(t *task, src device.Buffer) func() error {
	if src.DType == device.U64 {
		x.host64 = make([]uint64, src.Len)
		t.dst, t.src = []device.Buffer{device.Host(x.host64)}, []device.Buffer{src}
	} else if x.leaves[0] != none {
		x.host32 = make([]float32, src.Len)
		t.dst, t.src = []device.Buffer{device.Host(x.host32)}, []device.Buffer{src}
	}
	return nothing
}

// leafIndex finds each leaf's scalars among those of all ranks.
func (x *exec) leafIndex() []int {
	if x.p.Options.Mode.Scores() {
		return nil
	}
	words := scalarWords(x.p.Windows.Slots())
	index := make([]int, x.p.Options.Leaves)
	for r := range x.p.Mesh.World() {
		for slot, leaf := range x.p.Leaves(r) {
			if leaf != none {
				index[leaf] = r*words + 2*slot
			}
		}
	}
	return index
}

// exchange gathers the scalars of all ranks; before an update it also decides what the update does. Every rank computes the same
// from the same, so all decide alike.
func (x *exec) exchange(op *Op, s device.Stream) func() error {
	g := x.e.cfg.Groups[shard.World]
	dst, src := x.buffer(op.Args.Dst), x.buffer(op.Args.Src)
	control := x.buffer(Ref{Buf: op.Args.Out})
	return func() error {
		if err := g.AllGather(x.run.ctx, s, dst, src); err != nil {
			return err
		}
		all, c := dst.Uint64s(), control.Float32s()
		if all == nil || c == nil {
			return nil
		}
		l := x.losses(all)
		sum, finite := x.squares(all)
		c[0], c[1] = 0, 1
		if finite && l.Tokens > 0 {
			c[0], c[1] = float32(clipScale(sum, l.Tokens, x.e.cfg.Clip)), 0
		}
		return nil
	}
}

// clipScale is 1/tokens, and the clip factor of PyTorch's clip_grad_norm_: clip/(norm+1e-6), at most 1.
func clipScale(sumSquares float64, tokens int, clip float64) float64 {
	scale := 1 / float64(tokens)
	if clip > 0 {
		scale *= min(1, clip/(norm(sumSquares, tokens)+1e-6))
	}
	return scale
}

// norm is the norm of the mean gradient, from the exact sum of squares of the summed one.
func norm(sumSquares float64, tokens int) float64 {
	return math.Sqrt(sumSquares) * (1 / float64(tokens))
}

// losses folds the leaves' losses in their order.
func (x *exec) losses(all []uint64) (l Loss) {
	tokens := 0.0
	for _, at := range x.index {
		l.Sum += math.Float64frombits(all[at])
		tokens += math.Float64frombits(all[at+1])
	}
	l.Tokens = int(tokens)
	return l
}

// squares adds up the exact sums of replica 0's ranks: replicas hold the same gradients. A rank of any replica that met a value that is
// not finite makes the sum so.
func (x *exec) squares(all []uint64) (sum float64, finite bool) {
	acc := make([]uint64, exact.Words)
	x.eachAcc(all, func(rank int, a []uint64) {
		if x.p.Mesh.Coord(rank, shard.Replicate) == 0 || !exact.Finite(a) {
			exact.Merge(acc, a)
		}
	})
	return exact.Round(acc), exact.Finite(acc)
}

func (x *exec) eachAcc(all []uint64, f func(rank int, acc []uint64)) {
	words := scalarWords(x.p.Windows.Slots())
	for r := range x.p.Mesh.World() {
		f(r, all[(r+1)*words-exact.Words:(r+1)*words])
	}
}

func (x *exec) loss() Loss { return x.losses(x.host64) }

// stats reads a step's report.
func (x *exec) stats() Stats {
	l := x.losses(x.host64)
	sum, finite := x.squares(x.host64)
	st := Stats{Loss: l.Mean(), Tokens: l.Tokens, Norm: norm(sum, l.Tokens)}
	if finite && l.Tokens > 0 {
		return st
	}
	st.Skipped = &Skip{Rank: none, What: "no target of the batch is valid", Line: x.normLine()}
	x.eachAcc(x.host64, func(rank int, acc []uint64) {
		if tag := exact.Tag(acc); !exact.Finite(acc) && st.Skipped.Rank == none {
			st.Skipped.Rank, st.Skipped.What = rank, "its gradient is NaN"
			if math.IsInf(exact.Round(acc), 0) {
				st.Skipped.What = "its gradient is infinite"
			}
			if name, ok := x.p.tagged(tag); ok {
				st.Skipped.Param = name
			}
		}
	})
	return st
}

func (x *exec) normLine() string {
	for i := range x.p.Ops {
		if x.p.Ops[i].Verb == Norm {
			return x.p.Line(i)
		}
	}
	return ""
}

// tag numbers parameters from 1, in the layout's order.
func (p *Plan) tag(param string) uint32 {
	n := uint32(0)
	for i := range p.model.flats {
		for _, s := range p.model.flats[i].Segs {
			n++
			if s.Param.Name == param {
				return n
			}
		}
	}
	return 0
}

func (p *Plan) tagged(tag uint32) (string, bool) {
	n := uint32(0)
	for i := range p.model.flats {
		for _, s := range p.model.flats[i].Segs {
			n++
			if n == tag {
				return s.Param.Name, true
			}
		}
	}
	return "", false
}
