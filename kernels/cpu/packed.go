package cpu

// packed is a B (k,n) that several products use. A path may copy it to data in the order in which it reads it.
type packed struct {
	b    matrix
	k, n int
	data []float32 // nil where it was not
}

// tileProduct is one of attention's products, C (m,n) = A (m,k) · B (k,n), or added to C. Beside the diagonal the number of rows is
// that of columns (scores) or links (lower, upper), and a row needs only a part of them.
type tileProduct struct {
	c, a          matrix
	b             packed
	m             int
	diagonal, add bool
}

// plain is the product with all links.
func (t tileProduct) plain() product {
	return product{c: t.c, a: t.a, b: t.b.b, m: t.m, n: t.b.n, k: t.b.k, add: t.add}
}

// multiplier is a path's product.
type multiplier func(p product, pack []float32)

// scores needs row i of C up to column i.
func (f multiplier) scores(t tileProduct, pack []float32) { f(t.plain(), pack) }

// lower takes links 0 to i for row i.
func (f multiplier) lower(t tileProduct, pack []float32) {
	f.banded(t, band{-never, 1}, pack)
}

// upper takes links from i on for row i.
func (f multiplier) upper(t tileProduct, pack []float32) {
	f.banded(t, band{0, never}, pack)
}

// bandRows is the rows that are taken together beside the diagonal.
const bandRows = 4

func (f multiplier) banded(t tileProduct, w band, pack []float32) {
	p := t.plain()
	if !t.diagonal {
		f(p, pack)
		return
	}
	p.begin()
	w.parts(p.m, p.k, bandRows, func(i, m, from, to int) {
		if from < to {
			f(product{c: p.c.from(i, 0), a: p.a.from(i, from), b: p.b.from(from, 0), m: m, n: p.n, k: to - from, add: true}, pack)
		}
	})
}

// asIs packs nothing.
func asIs(b packed, _ []float32) packed { return b }
