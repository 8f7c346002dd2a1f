package cpu

// A product of few rows spends its time on reading B. Tiles would read it in strips of their columns; here rows of B are read from end
// to end, rowsTurn at a time, each as many links of the chains of C's rows, which are kept in C. With more rows tiles win where B is in a
// cache.
const (
	fewRows    = 2
	fewColumns = 1024 // of a block of B that rows after the first find in the first- or second-level cache
)

// multiply computes what it can without tiles, and leaves the rest to them.
func (g *tiling) multiply(p product, pack []float32) {
	if !p.ready() {
		return
	}
	columns := 0
	switch {
	case p.b.col != 1:
		columns = g.dots(&p)
	case p.m <= fewRows:
		var links int
		if columns, links = g.few(&p); columns > 0 && links < p.k {
			rest := p.block(0, 0, p.m, columns)
			rest.a, rest.b, rest.k, rest.add, rest.bias = p.a.from(0, links), p.b.from(links, 0), p.k-links, true, nil
			g.tiled(rest, pack)
		}
	}
	if columns < p.n {
		g.tiled(p.block(0, columns, p.m, p.n-columns), pack)
	}
}

// few computes all but the last columns, and for them all but the last links, of a product with a B stored by rows. It returns how many it did.
func (s set) few(p *product) (columns, links int) {
	columns, links = whole(p.n, rowTurn), whole(p.k, rowsTurn)
	if columns == 0 || links == 0 {
		return 0, 0
	}
	start := p.block(0, 0, p.m, columns)
	start.begin()
	for q := 0; q < links; q += rowsTurn {
		var a [fewRows][rowsTurn]float32
		for i := range p.m {
			for l := range rowsTurn {
				a[i][l] = p.a.x[i*p.a.row+(q+l)*p.a.col]
			}
		}
		for j := 0; j < columns; j += fewColumns {
			n := min(fewColumns, columns-j)
			for i := range p.m {
				s.linkRows(p.c.x[i*p.c.row+j:][:n], p.b.x[q*p.b.row+j:], 4*uintptr(p.b.row), &a[i])
			}
		}
	}
	return columns, links
}

func (s set) linkRows(c, b []float32, ld uintptr, a *[rowsTurn]float32) {
	if s == avx512 {
		linkRowsAVX512(c, b, ld, &a[0])
	} else {
		linkRowsAVX2(c, b, ld, &a[0])
	}
}

// dots computes all but the last columns of a product of one row with a B stored by columns: it transposes B on its way from memory. It
// returns how many it did.
func (s set) dots(p *product) (columns int) {
	width := s.width()
	if p.m != 1 || p.a.col != 1 || p.k%width != 0 {
		return 0
	}
	columns = whole(p.n, width)
	if columns == 0 {
		return 0
	}
	start := p.block(0, 0, 1, columns)
	start.begin()
	ld, k := 4*uintptr(p.b.col), uintptr(p.k)
	for j := 0; j < columns; j += width {
		if s == avx512 {
			dotsAVX512(&p.c.x[j], &p.b.x[j*p.b.col], ld, k, &p.a.x[0])
		} else {
			dotsAVX2(&p.c.x[j], &p.b.x[j*p.b.col], ld, k, &p.a.x[0])
		}
	}
	return columns
}
