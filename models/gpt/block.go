package gpt

import (
	"zeroshard/kernels"
	"zeroshard/models"
)

// The places of a block where randomness enters: Call.Key.Sub(site).
const (
	siteAttention = iota // probabilities
	siteMid              // what attention adds to the residual stream
	siteOut              // what the MLP adds
)

// block is one transformer block:
//
//	mid = x + drop(att·W_att)       att = attention(ln_1(x)·W_qkv)
//	out = mid + drop(gelu(fc)·W_proj)    fc = ln_2(mid)·W_fc
//
// What it saves for each token, in elements: qkv 3d, att d, mid d, fc inner, one log-sum-exp a head, mean and 1/deviation of both
// norms. The outputs of norms and GELU are computed again in backward: one cheap pass each for (2d + inner) elements a token.
type block struct {
	cfg                Config
	name               string
	reads              []string
	ln1, ln2           norm
	qkv, att, fc, proj linear
}

func newBlock(cfg Config, name string) models.Unit {
	d, inner := cfg.Width, cfg.inner()
	return &block{
		cfg: cfg, name: name, reads: []string{name},
		ln1:  norm{ln1W, ln1B, d, cfg.eps()},
		ln2:  norm{ln2W, ln2B, d, cfg.eps()},
		qkv:  linear{qkvW, qkvB, d, 3 * d},
		att:  linear{attW, attB, d, d},
		fc:   linear{fcW, fcB, d, inner},
		proj: linear{projW, projB, inner, d},
	}
}

func (b *block) Name() string { return b.name }

func (b *block) Reads() (forward, backward []string) { return b.reads, b.reads }

// Sizes: in Decode keys and values are cached, 2d elements for each token of room, and nobody asks for a log-sum-exp.
func (b *block) Sizes(s models.Shape, m models.Mode) models.Sizes {
	n, d, inner := s.Rows(), b.cfg.Width, b.cfg.inner()
	sizes := models.Sizes{
		Out:      n * d,
		Saved:    n * (5*d + inner + b.cfg.Heads + 4),
		Work:     n * max(d, inner),
		BackWork: n * (max(3*d, inner) + max(d, inner)),
		Flops:    b.flops(s),
	}
	if m == models.Decode {
		sizes.Saved -= n * b.cfg.Heads
		sizes.Cache = 2 * s.Batch * s.Room * d
	}
	return sizes
}

// flops counts two operations for each multiply-add of the four products and of attention, where a query of position t meets
// t+1 keys and as many values: 2·N·(4d² + 2·d·inner) + 2·d·B·T·(T+1); in Decode at most Room. The rest is small beside it and not counted.
func (b *block) flops(s models.Shape) int64 {
	n, t, d, inner := int64(s.Rows()), int64(s.Seq), int64(b.cfg.Width), int64(b.cfg.inner())
	if s.Room > 0 {
		t = 2*int64(s.Room) - 1
	}
	return 2*n*(4*d*d+2*d*inner) + 2*d*n*(t+1)
}

// kept is Call.Saved, cut. The large windows come first: they keep the alignment of the whole.
type kept struct{ qkv, att, mid, fc, lse, stats1, stats2 kernels.Buffer }

func (b *block) kept(c *models.Call) kept {
	n, d, cut := c.Shape.Rows(), b.cfg.Width, cutter{c.Saved}
	k := kept{qkv: cut.take(3 * n * d), att: cut.take(n * d), mid: cut.take(n * d), fc: cut.take(n * b.cfg.inner())}
	if c.Mode != models.Decode {
		k.lse = cut.take(n * b.cfg.Heads)
	}
	k.stats1, k.stats2 = cut.take(2*n), cut.take(2*n)
	return k
}

func (b *block) Forward(c *models.Call) error {
	if err := b.cfg.CheckShape(c.Shape); err != nil {
		return err
	}
	k := b.kept(c)
	n, d := c.Shape.Rows(), b.cfg.Width
	normed := c.Work.Slice(0, n*d)

	b.ln1.forward(c, normed, c.In, k.stats1, false)
	b.qkv.forward(c, k.qkv, normed)
	if c.Mode == models.Decode {
		c.K.AttentionNext(c.S, kernels.AttentionNext{Out: k.att, QKV: k.qkv, Cache: c.Cache, Spans: c.Spans,
			Batch: c.Shape.Batch, Seq: c.Shape.Seq, Room: c.Shape.Room, Heads: b.cfg.Heads, Dim: d / b.cfg.Heads})
	} else {
		c.K.Attention(c.S, b.attention(c, k))
	}
	b.att.forward(c, k.mid, k.att)
	b.residual(c, k.mid, c.In, siteMid)

	b.ln2.forward(c, normed, k.mid, k.stats2, false)
	b.fc.forward(c, k.fc, normed)
	if c.Out.Len == 0 { // recomputing: backward wants Saved alone
		return nil
	}
	gelu := c.Work.Slice(0, n*b.cfg.inner())
	c.K.GELU(c.S, gelu, k.fc)
	b.proj.forward(c, c.Out, gelu)
	b.residual(c, c.Out, k.mid, siteOut)
	return nil
}

// residual: y = x + drop(y).
func (b *block) residual(c *models.Call, y, x kernels.Buffer, site uint64) {
	if p := b.cfg.drop(c.Mode); p > 0 {
		c.K.Dropout(c.S, y, y, p, c.Key.Sub(site))
	}
	c.K.Sum(c.S, y, x, y)
}

func (b *block) attention(c *models.Call, k kept) kernels.Attention {
	return kernels.Attention{Out: k.att, QKV: k.qkv, LSE: k.lse,
		Batch: c.Shape.Batch, Seq: c.Shape.Seq, Heads: b.cfg.Heads, Dim: b.cfg.Width / b.cfg.Heads,
		Drop: b.cfg.drop(c.Mode), Key: c.Key.Sub(siteAttention)}
}

// Backward works in DIn and in two windows of BackWork, wide (max(3d, inner) a token) and narrow (max(d, inner)). The comments say
// what each holds from there on.
func (b *block) Backward(c *models.Call) error {
	k := b.kept(c)
	n, d, inner := c.Shape.Rows(), b.cfg.Width, b.cfg.inner()
	cut := cutter{c.Work}
	wide, narrow := cut.take(n*max(3*d, inner)), cut.take(n*max(d, inner))

	// out = mid + drop(gelu(fc)·W_proj)
	dproj := b.dropped(c, c.DIn, c.DOut, siteOut) // DIn: dproj where there is dropout
	dfc, gelu := wide.Slice(0, n*inner), narrow.Slice(0, n*inner)
	b.proj.dinput(c, dfc, dproj)                // wide: dgelu
	c.K.GELUBackward(c.S, dfc, gelu, dfc, k.fc) // wide: dfc; narrow: gelu
	b.proj.dparams(c, gelu, dproj)

	// fc = ln_2(mid)·W_fc
	normed := narrow.Slice(0, n*d)
	b.ln2.forward(c, normed, k.mid, k.stats2, true) // narrow: ln_2(mid)
	b.fc.dparams(c, normed, dfc)
	b.fc.dinput(c, normed, dfc) // narrow: its gradient
	b.ln2.backward(c, normBack{dx: c.DIn, dy: normed, x: k.mid, stats: k.stats2, trash: wide})
	c.K.Sum(c.S, c.DIn, c.DOut, c.DIn) // DIn: dmid

	// mid = x + drop(att·W_att)
	datt := b.dropped(c, wide.Slice(0, n*d), c.DIn, siteMid) // wide: the gradient of att·W_att where there is dropout
	b.att.dparams(c, k.att, datt)
	b.att.dinput(c, normed, datt) // narrow: datt
	dqkv := wide.Slice(0, 3*n*d)
	c.K.AttentionBackward(c.S, kernels.AttentionBackward{DQKV: dqkv, DOut: normed, Attention: b.attention(c, k)}) // wide: dqkv

	// qkv = ln_1(x)·W_qkv
	b.ln1.forward(c, normed, c.In, k.stats1, true) // narrow: ln_1(x)
	b.qkv.dparams(c, normed, dqkv)
	b.qkv.dinput(c, normed, dqkv) // narrow: its gradient
	b.ln1.backward(c, normBack{dx: c.DIn, dy: normed, x: c.In, stats: k.stats1, trash: wide, addX: true})
	return nil
}

// dropped returns d(x) of y = drop(x): dy itself without dropout, else dst, where it is written.
func (b *block) dropped(c *models.Call, dst, dy kernels.Buffer, site uint64) kernels.Buffer {
	p := b.cfg.drop(c.Mode)
	if p == 0 {
		return dy
	}
	c.K.Dropout(c.S, dst, dy, p, c.Key.Sub(site))
	return dst
}
