package cpu

import "zeroshard/kernels/internal/f32"

// backward is one head. Blocks of keys ascend, and in each the blocks of queries from the diagonal on: so the chains of dq
// ascend in keys, those of dk and dv in queries, as in package ref, and nothing larger than a tile is kept. What is met first
// starts a chain: a query's is its first block of keys, a key's the tile beside the diagonal.
func (t *tile) backward() {
	for k0 := 0; k0 < t.a.Seq; k0 += keyBlock {
		t.keys(k0)
		k, v := t.at(t.qkv, key, 3, k0), t.at(t.qkv, value, 3, k0)
		keys, dots, values := t.pack(k, t.cols, 0), t.packDots(k, t.cols, 1), t.packDots(v, t.cols, 2)
		for q0 := k0; q0 < t.a.Seq; q0 += queryBlock {
			t.queries(q0)
			t.backTile(keys, dots, values)
		}
	}
}

// backTile: with p = exp(s − lse) and p' = p after dropout,
//
//	dv += p'ᵀ·dO   ds = p·(keep·(dO·vᵀ) − D)·scale   dq += ds·k   dk += dsᵀ·q
func (t *tile) backTile(keys, dots, values packed) {
	p, ds, path, scratch := t.scores(0), t.scores(1), t.k.path, t.t.pieces
	q, do, out := t.at(t.qkv, query, 3, t.q0), t.at(t.dout, 0, 1, t.q0), t.at(t.out, 0, 1, t.q0)
	path.scores(t.product(p, q, dots, false), scratch)
	path.scores(t.product(ds, do, values, false), scratch)
	for i := range t.rows {
		n := t.valid(i)
		c := scoreConst{t.scale, t.lse[t.row(i)], path.dot(t.of(do, i), t.of(out, i))}
		var keep []float32
		if t.a.Drop > 0 {
			keep = t.keep(i, n)
		}
		path.scoreBack(p.x[i*tileStride:][:n], ds.x[i*tileStride:][:n], keep, c)
	}
	below := t.q0 > t.k0
	path.lower(t.product(t.at(t.dqkv, query, 3, t.q0), ds, keys, t.k0 > 0), scratch)
	t.upper(value, p, t.pack(do, t.rows, 3), below)
	t.upper(key, ds, t.pack(q, t.rows, 4), below)
}

// upper adds to the keys' rows of a part of dqkv: those of b, one for each query, with the factors of the tile from the diagonal on.
func (t *tile) upper(part int, scores matrix, b packed, add bool) {
	p := t.product(t.at(t.dqkv, part, 3, t.k0), scores.transposed(), b, add)
	p.m = t.cols
	t.k.path.upper(p, t.t.pieces)
}

// scoreConst is the scalars of one row, in the order in which assembly reads them.
type scoreConst struct{ scale, lse, delta float32 }

// scoreBack is the portable one, see path.
func scoreBack(p, ds, keep []float32, c scoreConst) {
	ds = ds[:len(p)]
	for i, s := range p {
		e, d := f32.Exp(float32(s*c.scale)-c.lse), ds[i]
		p[i] = e
		if keep != nil {
			d = float32(d * keep[i])
			p[i] = float32(e * keep[i])
		}
		ds[i] = float32(float32(e*(d-c.delta)) * c.scale)
	}
}
