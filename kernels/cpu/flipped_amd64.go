package cpu

// A product of few rows with a B stored by columns, as when a model writes text, would spend its time on packing B. Seen from the
// side it is Cᵀ = Bᵀ·Aᵀ: B is read once, where it is, as the left operand, and the few rows of A are one packed panel. Blocks of
// Cᵀ, flippedRows by tileColumns, lie in the scratch. Factors of a link change places, which changes no bit.
const (
	flippedRows   = 40 * tileRows
	flippedFloats = packFloats - flippedRows*tileColumns
)

func (p *product) flipped(pack []float32) {
	block, panel := pack[:flippedRows*tileColumns], pack[flippedRows*tileColumns:][:p.k*tileColumns]
	turned := product{b: matrix{p.a.x, p.a.col, p.a.row}, n: p.m, k: p.k}
	turned.packPanel(panel)
	for j := 0; j < p.n; j += flippedRows {
		n := min(flippedRows, p.n-j)
		start := p.flip(block, j, n)
		t := tileArgs{a: rowsOfA{&p.b.x[j*p.b.col], 4 * uintptr(p.b.col), 4, 4 * tileRows * uintptr(p.b.col)}, b: pointer{&panel[0], 4 * tileColumns},
			c: pointer{&block[0], 4 * tileColumns}, k: uintptr(p.k), columns: tileColumns}
		if start {
			t.init = t.c
		}
		t.run(n)
		for i := range p.m {
			c := p.c.x[i*p.c.row+j:][:n]
			for r := range c {
				c[r] = block[r*tileColumns+i]
			}
		}
	}
}

// flip writes to block where the chains of n columns of C, from j on, start. It reports false where they start at 0.
func (p *product) flip(block []float32, j, n int) bool {
	if !p.add && p.bias == nil {
		return false
	}
	for i := range p.m {
		src := p.bias
		if p.add {
			src = p.c.x[i*p.c.row:]
		}
		for r, v := range src[j : j+n] {
			block[r*tileColumns+i] = v
		}
	}
	return true
}
