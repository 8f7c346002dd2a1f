//go:build amd64 || arm64

package cpu

// A product of few rows with a B stored by columns, as when a model writes text, would spend its time on packing B. Seen from the
// side it is Cᵀ = Bᵀ·Aᵀ: B is read once, where it is, as the left operand, and the few rows of A are one packed panel. Blocks of
// Cᵀ, flippedRows by a tile's columns, lie in the scratch. Factors of a link change places, which changes no bit.
const flippedRows = 240 // a multiple of a tile's

// flips tells whether a product is worth it, and has room.
func (g *tiling) flips(p *product, pack []float32) bool {
	return p.b.col != 1 && p.m <= g.columns && (p.k+flippedRows)*g.columns <= len(pack)
}

func (g *tiling) flipped(p *product, pack []float32) {
	block, panel := pack[:flippedRows*g.columns], pack[flippedRows*g.columns:][:p.k*g.columns]
	turned, row := product{b: matrix{p.a.x, p.a.col, p.a.row}, n: p.m, k: p.k}, 4*uintptr(g.columns)
	g.packPanel(&turned, panel)
	for j := 0; j < p.n; j += flippedRows {
		n := min(flippedRows, p.n-j)
		start := p.flip(block, j, n, g.columns)
		t := tileArgs{a: rowsOfA{&p.b.x[j*p.b.col], 4 * uintptr(p.b.col), 4, 4 * uintptr(g.rows*p.b.col)}, b: pointer{&panel[0], row},
			c: pointer{&block[0], row}, k: uintptr(p.k), columns: uintptr(g.columns)}
		if start {
			t.init = t.c
		}
		g.run(&t, n)
		for i := range p.m {
			c := p.c.x[i*p.c.row+j:][:n]
			for r := range c {
				c[r] = block[r*g.columns+i]
			}
		}
	}
}

// flip writes to block, whose rows are so many columns long, where the chains of n columns of C, from j on, start. It reports false where they
// start at 0.
func (p *product) flip(block []float32, j, n, columns int) bool {
	if !p.add && p.bias == nil {
		return false
	}
	for i := range p.m {
		src := p.bias
		if p.add {
			src = p.c.x[i*p.c.row:]
		}
		for r, v := range src[j : j+n] {
			block[r*columns+i] = v
		}
	}
	return true
}
