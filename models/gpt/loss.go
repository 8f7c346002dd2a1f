package gpt

import (
	"fmt"

	"zeroshard/kernels"
	"zeroshard/models"
)

// logitsBudget is the elements of one chunk's logits. Two forces set it: a chunk's logits are scratch (64 MiB in fp32), and each chunk
// reads and writes the table's gradient once, which costs little only while a chunk has some 200 tokens or more.
const logitsBudget = 1 << 24

// minChunk is the smallest chunk: where the vocabulary is huge, the budget gives way.
const minChunk = 16

// loss is the last unit: ln_f, the projection on the tied table, cross-entropy. Tokens are taken in chunks whose size follows from
// the shape, so that logits of all tokens never exist. In Train one pass over the chunks gives loss, input gradient and
// the gradients of root.
type loss struct {
	cfg    Config
	budget int
	reads  []string
	lnf    norm
}

func newLoss(cfg Config, budget int) models.Unit {
	return &loss{cfg: cfg, budget: budget, reads: []string{root}, lnf: norm{lnfW, lnfB, cfg.Width, cfg.eps()}}
}

func (l *loss) Name() string { return "loss" }

func (l *loss) Reads() (forward, backward []string) { return l.reads, nil }

// chunk is the number of tokens taken at a time: the fewest chunks within the budget, of about equal size.
func (l *loss) chunk(s models.Shape) int {
	n := s.Rows()
	most := max(l.budget/l.cfg.Vocab, minChunk)
	chunks := (n + most - 1) / most
	return (n + chunks - 1) / chunks
}

// Sizes: Flops is the projection, 2·rows·vocabulary·width.
func (l *loss) Sizes(s models.Shape, m models.Mode) models.Sizes {
	d, v := l.cfg.Width, l.cfg.Vocab
	rows, work := s.Rows(), l.chunk(s)*(d+v+2)
	var out int
	if m.Scores() {
		rows, out, work = s.Batch, s.Batch*v, s.Batch*(2*d+2)
	}
	return models.Sizes{Out: out, Work: work, Flops: 2 * int64(rows) * int64(v) * int64(d)}
}

func (l *loss) Forward(c *models.Call) error {
	if err := l.cfg.CheckShape(c.Shape); err != nil {
		return err
	}
	if c.Mode.Scores() {
		l.logits(c)
		return nil
	}
	if c.Mode == models.Train && !c.Add {
		return fmt.Errorf("%w: the gradient of %q has two writers, so it must be added to", ErrCall, root)
	}
	n, size := c.Shape.Rows(), l.chunk(c.Shape)
	for lo := 0; lo < n; lo += size {
		l.forwardChunk(c, lo, min(lo+size, n))
	}
	return nil
}

// forwardChunk does tokens [lo, hi): loss, and in Train their DIn and their part of G.
func (l *loss) forwardChunk(c *models.Call, lo, hi int) {
	d, v, rows := l.cfg.Width, l.cfg.Vocab, hi-lo
	x, cut := c.In.Slice(lo*d, hi*d), cutter{c.Work}
	normed, logits, stats := cut.take(rows*d), cut.take(rows*v), cut.take(rows*2)

	l.lnf.forward(c, normed, x, stats, false)
	l.project(c, logits, normed)
	train := c.Mode == models.Train
	c.K.CrossEntropy(c.S, kernels.CrossEntropy{Logits: logits, Targets: c.Targets.Slice(lo, hi), Loss: c.Loss, Scale: c.Scale,
		Rows: rows, Vocab: v, Grad: train})
	if !train {
		return
	}
	dx := c.DIn.Slice(lo*d, hi*d) // first the gradient of normed, then of x
	c.K.MatMul(c.S, kernels.MatMul{C: dx, A: logits, B: c.P[wte], M: rows, N: d, K: v})
	if dw := c.G[wte]; dw.Len > 0 {
		c.K.MatMul(c.S, kernels.MatMul{C: dw, A: logits, B: normed, M: v, N: d, K: rows, TransA: true, Add: true})
	}
	l.lnf.backward(c, normBack{dx: dx, dy: dx, x: x, stats: stats, trash: normed})
}

// logits: Out (B,V) of each sequence's picked row.
func (l *loss) logits(c *models.Call) {
	b, d, cut := c.Shape.Batch, l.cfg.Width, cutter{c.Work}
	x, normed, stats := cut.take(b*d), cut.take(b*d), cut.take(b*2)
	c.K.PickRows(c.S, x, c.In, c.Targets, c.Shape.Seq, d)
	l.lnf.forward(c, normed, x, stats, false)
	l.project(c, c.Out, normed)
}

// project: logits (rows,V) = x (rows,d)·wteᵀ.
func (l *loss) project(c *models.Call, logits, x kernels.Buffer) {
	c.K.MatMul(c.S, kernels.MatMul{C: logits, A: x, B: c.P[wte], M: x.Len / l.cfg.Width, N: l.cfg.Vocab, K: l.cfg.Width, TransB: true})
}

// Backward is never called: Forward has written what it would.
func (l *loss) Backward(*models.Call) error {
	return fmt.Errorf("%w: the last unit has no backward", ErrCall)
}
