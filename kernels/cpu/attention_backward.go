package cpu

// backward is one head. Blocks of keys ascend, and in each the blocks of queries from the diagonal on: so the chains of dq
// ascend in keys, those of dk and dv in queries, as in package ref, and nothing larger than a tile is kept.
func (t *tile) backward() {
	for part := range 3 {
		d, step := t.at(t.dqkv, part, 3, 0)
		for i := range t.a.Seq {
			clear(d[i*step:][:t.a.Dim])
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
	p, ds := t.t.scores[0], t.t.scores[1]
	path := t.k.path
	t.score(p)
	do, ostep := t.at(t.dout, 0, 1, t.q0)
	out, _ := t.at(t.out, 0, 1, t.q0)
	v, step := t.at(t.qkv, value, 3, t.k0)
	path.multiply(product{c: ds, ldc: keyBlock, a: do, ai: ostep, ap: 1, b: v, bp: 1, bj: step, m: t.rows, n: t.cols, k: t.a.Dim}, t.t.pack)
	for i := range t.rows {
		n := t.valid(i)
		s, d := p[i*keyBlock:][:n], ds[i*keyBlock:][:n]
		path.expSum(s, s, t.lse[t.row(i)])
		t.drop(d, d, i)
		path.scoreGrad(d, s, path.dot(do[i*ostep:][:t.a.Dim], out[i*ostep:][:t.a.Dim]), t.scale)
		t.drop(s, s, i)
	}
	dq, _ := t.at(t.dqkv, query, 3, t.q0)
	dk, _ := t.at(t.dqkv, key, 3, t.k0)
	dv, _ := t.at(t.dqkv, value, 3, t.k0)
	q, _ := t.at(t.qkv, query, 3, t.q0)
	k, _ := t.at(t.qkv, key, 3, t.k0)
	t.upper(product{c: dv, ldc: step, a: p, ai: 1, ap: keyBlock, b: do, bp: ostep, bj: 1, n: t.a.Dim})
	t.lower(product{c: dq, ldc: step, a: ds, ai: keyBlock, ap: 1, b: k, bp: step, bj: 1, n: t.a.Dim})
	t.upper(product{c: dk, ldc: step, a: ds, ai: 1, ap: keyBlock, b: q, bp: step, bj: 1, n: t.a.Dim})
}

// upper adds the product of the transposed tile (cols, rows), from the diagonal on, with rows of B. Keys go in groups: first each
// key's own queries, then those that see all keys of the group.
func (t *tile) upper(p product) {
	p.add = true
	for j := 0; j < t.cols; j += group {
		g := p
		g.m = min(group, t.cols-j)
		last := t.first(j + g.m - 1)
		g.c, g.a = p.c[j*p.ldc:], p.a[j*p.ai:]
		for r := range g.m - 1 {
			if own := t.first(j + r); own < last {
				one := g
				one.m, one.k = 1, last-own
				one.c, one.a, one.b = g.c[r*g.ldc:], g.a[r*g.ai+own*g.ap:], g.b[own*g.bp:]
				t.k.path.multiply(one, t.t.pack)
			}
		}
		if g.k = t.rows - last; g.k > 0 {
			g.a, g.b = g.a[last*g.ap:], g.b[last*g.bp:]
			t.k.path.multiply(g, t.t.pack)
		}
	}
}

// first is the first row of the tile that sees key j of the tile, rows if none does.
func (t *tile) first(j int) int { return min(max(t.k0+j-t.q0, 0), t.rows) }

func scoreGrad(dst, p []float32, delta, scale float32) {
	p = p[:len(dst)]
	for i, v := range dst {
		dst[i] = float32(float32(p[i]*(v-delta)) * scale)
	}
}
