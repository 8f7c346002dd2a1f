package cpu

// packAVX2 copies B to panels of 16 columns.
func packAVX2(b packed, dst []float32) packed {
	b.data = dst
	j, panel := 0, b.k*tileColumns
	if b.b.col == 1 {
		for ; j+4*tileColumns <= b.n; j += 4 * tileColumns {
			_ = dst[j*b.k:][:4*panel]
			packRows4AVX2(&dst[j*b.k], &b.b.x[j], 4*uintptr(b.b.row), uintptr(b.k), 4*uintptr(panel))
		}
	}
	for ; j < b.n; j += tileColumns {
		p := product{b: b.b.from(0, j), n: min(tileColumns, b.n-j), k: b.k}
		p.packPanel(dst[j*b.k:][:panel])
	}
	return b
}

// panel is the arguments of the panel of B at column j, with C and A at the first row.
func (t *tileProduct) panel(p *product, j int) tileArgs {
	a := p.tiles()
	p.columns(&a, j)
	a.b = pointer{&t.b.data[j*p.k], 4 * tileColumns}
	return a
}

func scoresAVX2(t tileProduct, pack []float32) {
	p := t.plain()
	if t.b.data == nil {
		multiplyAVX2(p, pack)
		return
	}
	p.check()
	for j := 0; j < p.n; j += tileColumns {
		a, from := t.panel(&p, j), 0
		if t.diagonal { // rows before see none of these columns
			from = j / tileRows * tileRows
			a.move(uintptr(from), 0)
		}
		a.run(t.m - from)
	}
}

// lowerAVX2: beside the diagonal each group of rows has six more links than the one before.
func lowerAVX2(t tileProduct, pack []float32) {
	if t.b.data == nil {
		multiplier(multiplyAVX2).lower(t, pack)
		return
	}
	p := t.plain()
	p.check()
	for j := 0; j < p.n; j += tileColumns {
		a := t.panel(&p, j)
		if t.diagonal {
			a.k, a.kGroup, a.triangle = 1, tileRows, 1
		}
		a.run(t.m)
	}
}

// upperAVX2: beside the diagonal each group of rows starts six links later than the one before.
func upperAVX2(t tileProduct, pack []float32) {
	if t.b.data == nil {
		multiplier(multiplyAVX2).upper(t, pack)
		return
	}
	p := t.plain()
	p.check()
	for j := 0; j < p.n; j += tileColumns {
		a := t.panel(&p, j)
		if t.diagonal {
			a.k, a.kGroup, a.triangle = uintptr(t.m-tileRows+1), -tileRows, -1
			a.a.group += tileRows * a.a.link
			a.bGroup = tileRows * a.b.step
		}
		a.run(t.m)
	}
}
