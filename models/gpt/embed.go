package gpt

import (
	"fmt"

	"zeroshard/kernels"
	"zeroshard/models"
)

// siteEmbed is the only place of embed where randomness enters.
const siteEmbed = 0

// embed is the first unit: x = drop(wte[token] + wpe[position]). Its backward needs no parameter.
type embed struct{ cfg Config }

func newEmbed(cfg Config) models.Unit { return &embed{cfg} }

func (e *embed) Name() string { return "embed" }

func (e *embed) Reads() (forward, backward []string) { return []string{root}, nil }

func (e *embed) Sizes(s models.Shape, m models.Mode) models.Sizes {
	out := s.Rows() * e.cfg.Width
	sizes := models.Sizes{Out: out}
	if e.cfg.drop(m) > 0 {
		sizes.BackWork = out
	}
	return sizes
}

func (e *embed) Forward(c *models.Call) error {
	if err := e.cfg.CheckShape(c.Shape); err != nil {
		return err
	}
	if c.Out.Len == 0 { // nothing to recompute
		return nil
	}
	if c.Mode == models.Decode {
		c.K.EmbedNext(c.S, kernels.EmbedNext{Out: c.Out, Table: c.P[wte], Pos: c.P[wpe], Tokens: c.Tokens, Spans: c.Spans,
			Batch: c.Shape.Batch, Seq: c.Shape.Seq, Dim: e.cfg.Width})
		return nil
	}
	c.K.Embed(c.S, e.call(c, c.P, c.Out))
	if p := e.cfg.drop(c.Mode); p > 0 {
		c.K.Dropout(c.S, c.Out, c.Out, p, c.Key.Sub(siteEmbed))
	}
	return nil
}

func (e *embed) Backward(c *models.Call) error {
	if !c.Add {
		return fmt.Errorf("%w: the gradient of %q has two writers, so it must be added to", ErrCall, root)
	}
	dout := c.DOut
	if p := e.cfg.drop(c.Mode); p > 0 {
		dout = c.Work
		c.K.Dropout(c.S, dout, c.DOut, p, c.Key.Sub(siteEmbed))
	}
	g := e.call(c, c.G, dout)
	switch {
	case g.Table.Len > 0:
		c.K.EmbedBackward(c.S, g)
	case g.Pos.Len > 0: // the table is frozen: positions are the columns of (B, T·d)
		c.K.BiasGrad(c.S, g.Pos, dout, g.Batch, g.Seq*g.Dim, true)
	}
	return nil
}

// call fits Embed and its backward: bufs are parameters or their gradients, which are empty where frozen.
func (e *embed) call(c *models.Call, bufs []kernels.Buffer, out kernels.Buffer) kernels.Embed {
	pos := bufs[wpe]
	if pos.Len > 0 {
		pos = pos.Slice(0, c.Shape.Seq*e.cfg.Width)
	}
	return kernels.Embed{Out: out, Table: bufs[wte], Pos: pos, Tokens: c.Tokens,
		Batch: c.Shape.Batch, Seq: c.Shape.Seq, Dim: e.cfg.Width}
}
