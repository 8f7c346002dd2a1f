package cpu

// pack copies B to panels.
func (g *tiling) pack(b packed, dst []float32) packed {
	b.data = dst
	j, panel := 0, b.k*g.columns
	if b.b.col == 1 {
		for ; j+wideColumns <= b.n; j += wideColumns {
			_ = dst[j*b.k:][:b.k*wideColumns]
			g.packRowsWide(&dst[j*b.k], &b.b.x[j], 4*uintptr(b.b.row), uintptr(b.k), 4*uintptr(panel))
		}
	}
	for ; j < b.n; j += g.columns {
		p := product{b: b.b.from(0, j), n: min(g.columns, b.n-j), k: b.k}
		g.packPanel(&p, dst[j*b.k:][:panel])
	}
	return b
}

// panel is the arguments of the panel of B at column j, with C and A at the first row.
func (g *tiling) panel(t *tileProduct, p *product, j int) tileArgs {
	a := g.args(p)
	g.point(p, &a, j)
	a.b = pointer{&t.b.data[j*p.k], 4 * uintptr(g.columns)}
	return a
}

func (g *tiling) scores(t tileProduct, pack []float32) {
	p := t.plain()
	if t.b.data == nil {
		g.multiply(p, pack)
		return
	}
	p.check()
	for j := 0; j < p.n; j += g.columns {
		a, from := g.panel(&t, &p, j), 0
		if t.diagonal { // rows before see none of these columns
			from = j / g.rows * g.rows
			a.a.at, a.c.at = ahead(a.a.at, uintptr(from)*a.a.row), ahead(a.c.at, uintptr(from)*a.c.step)
		}
		g.run(&a, t.m-from)
	}
}

// lower: beside the diagonal each group of rows has more links than the one before, as many as it has rows.
func (g *tiling) lower(t tileProduct, pack []float32) {
	if t.b.data == nil {
		multiplier(g.multiply).lower(t, pack)
		return
	}
	p := t.plain()
	p.check()
	for j := 0; j < p.n; j += g.columns {
		a := g.panel(&t, &p, j)
		if t.diagonal {
			a.k, a.kGroup, a.triangle = 1, g.rows, 1
		}
		g.run(&a, t.m)
	}
}

// upper: beside the diagonal each group of rows starts later than the one before, by as many links as it has rows.
func (g *tiling) upper(t tileProduct, pack []float32) {
	if t.b.data == nil {
		multiplier(g.multiply).upper(t, pack)
		return
	}
	p := t.plain()
	p.check()
	for j := 0; j < p.n; j += g.columns {
		a := g.panel(&t, &p, j)
		if t.diagonal {
			a.k, a.kGroup, a.triangle = uintptr(t.m-g.rows+1), -g.rows, -1
			a.a.group += uintptr(g.rows) * a.a.link
			a.bGroup = uintptr(g.rows) * a.b.step
		}
		g.run(&a, t.m)
	}
}
