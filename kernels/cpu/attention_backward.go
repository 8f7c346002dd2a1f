package cpu

// backward is one head. Blocks of keys ascend, and in each the blocks of queries from the diagonal on: so the chains of dq
// ascend in keys, those of dk and dv in queries, as in package ref, and nothing larger than a tile is kept.
func (t *tile) backward() {
	for part := range 3 {
		d := t.at(t.dqkv, part, 3, 0)
		for i := range t.a.Seq {
			clear(t.of(d, i))
		}
	}
	for t.k0 = 0; t.k0 < t.a.Seq; t.k0 += keyBlock {
		t.cols = min(keyBlock, t.a.Seq-t.k0)
		for t.q0 = t.k0 / queryBlock * queryBlock; t.q0 < t.a.Seq; t.q0 += queryBlock {
			t.rows = min(queryBlock, t.a.Seq-t.q0)
			t.backTile()
		}
	}
}

// backTile: with p = exp(s − lse) and p' = p after dropout,
//
//	dv += p'ᵀ·dO   ds = p·(keep·(dO·vᵀ) − D)·scale   dq += ds·k   dk += dsᵀ·q
func (t *tile) backTile() {
	p, ds := t.scores(0), t.scores(1)
	do, out := t.at(t.dout, 0, 1, t.q0), t.at(t.out, 0, 1, t.q0)
	t.score(p)
	t.dots(ds, do, t.at(t.qkv, value, 3, t.k0))
	for i := range t.rows {
		n := t.valid(i)
		s, d := p.x[i*keyBlock:][:n], ds.x[i*keyBlock:][:n]
		t.k.path.expSum(s, s, t.lse[t.row(i)])
		t.drop(d, i)
		t.k.path.scoreGrad(d, s, t.k.path.dot(t.of(do, i), t.of(out, i)), t.scale)
		t.drop(s, i)
	}
	t.upper(t.at(t.dqkv, value, 3, t.k0), p, do)
	t.lower(t.at(t.dqkv, query, 3, t.q0), ds, t.at(t.qkv, key, 3, t.k0))
	t.upper(t.at(t.dqkv, key, 3, t.k0), ds, t.at(t.qkv, query, 3, t.q0))
}

// upper adds to the keys' rows of c: those of x, one for each query, with the factors of the tile from the diagonal on.
func (t *tile) upper(c, scores, x matrix) {
	t.k.path.banded(product{c: c, a: scores.transposed(), b: x, m: t.cols, n: t.a.Dim, k: t.rows}, band{t.k0 - t.q0, never}, t.t.pack)
}

func scoreGrad(dst, p []float32, delta, scale float32) {
	p = p[:len(dst)]
	for i, v := range dst {
		dst[i] = float32(float32(p[i]*(v-delta)) * scale)
	}
}
