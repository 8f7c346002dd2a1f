//go:build amd64 || arm64

package cpu

import "unsafe"

// Which loops compute a product of m rows, n columns and k links, and why:
//
//	B by columns, as that of x·Wᵀ
//	    m = 1, amd64: dots        where k is whole vectors: B is read once, and transposed in registers; the last columns go on below
//	    m ≤ 16:       flipped     where Aᵀ fits the scratch: B is read once, as the left operand; slim tiles, of one vector, where m ≤ 8 (amd64)
//	    else:         blocks      packing B costs less than its m uses bring
//	B by rows
//	    m ≤ 2, amd64: few         rows of B are read from end to end; what is past whole turns goes to blocks
//	    else:         blocks
//
//	blocks cut C (blockM, blockC) → links cut k (blockK), and pack A where enough columns use it → sweep
//	    B by columns, or more than two tiles of rows: wide panels of B are packed, several at a time
//	    else:                                         B is read where it is, but for the last, narrower columns
//	    → run, a panel past all rows → tile, in registers
//
// tiling is the product of an instruction set. A tile of C, rows by columns, stays in registers over blockK links. A panel of B, blockK by
// columns, stays in the first- or second-level cache while a block of A, blockM by blockK, passes it: from the second level where it is
// small, else from the third: some bytes a cycle are easily had, and the more rows, the fewer times B is packed. Panels are packed several at
// a time, so that a row of B is read by whole cache lines of one page. A block of C, of blockC floats, is done with all links before
// the next, so that it is in the third level when they go on.
type tiling struct {
	set
	rows, columns int  // of a tile
	slim          bool // one vector wide
}

const (
	blockM      = 516 // a multiple of a tile's rows
	blockK      = 256
	blockC      = 768 << 10
	wideColumns = 64 // of the panels that are packed at a time
	blockB      = blockK * wideColumns
	slack       = 16 // packARows writes at most so far past the end
)

const _ = uint(packFloats - blockB - blockM*blockK - slack) // must not be negative

// ready is what comes before the links of all products. It reports false where that was all.
func (p *product) ready() bool {
	if p.k == 0 || p.add && p.bias != nil {
		p.begin()
		p.add, p.bias = true, nil
	}
	if p.m == 0 || p.n == 0 || p.k == 0 {
		return false
	}
	p.check()
	return true
}

// tiled packs what tiles could not read at full speed: panels of B, unless few rows would use them, and A where enough
// columns will.
func (g *tiling) tiled(p product, pack []float32) {
	if f := flatTiles(p.m); f.flips(&p, pack) {
		f.flipped(&p, pack)
		return
	}
	g.blocks(p, pack)
}

// blocks computes a product block by block.
func (g *tiling) blocks(p product, pack []float32) {
	rows, columns := evenly(p.m, blockM, g.rows), p.n
	if p.k > blockK {
		columns = evenly(p.n, max(blockC/rows, wideColumns), wideColumns)
	}
	for i := 0; i < p.m; i += rows {
		for j := 0; j < p.n; j += columns {
			g.links(p.block(i, j, min(rows, p.m-i), min(columns, p.n-j)), pack)
		}
	}
}

// block is the product for m rows from i on and n columns from j on.
func (p *product) block(i, j, m, n int) product {
	b := product{c: p.c.from(i, j), a: p.a.from(i, 0), b: p.b.from(0, j), m: m, n: n, k: p.k, add: p.add}
	if p.bias != nil {
		b.bias = p.bias[j : j+n]
	}
	return b
}

// links computes a block, blockK links at a time.
func (g *tiling) links(p product, pack []float32) {
	for q := 0; q < p.k; q += blockK {
		block := p
		block.a, block.b, block.k = p.a.from(0, q), p.b.from(q, 0), min(blockK, p.k-q)
		if q > 0 { // go on with what C holds
			block.add, block.bias = true, nil
		}
		t := g.args(&block)
		if p.n >= 192 || p.a.col != 1 && p.n > 2*g.columns {
			g.packA(&block, &t, pack[blockB:])
		}
		g.sweep(&block, &t, pack)
	}
}

// evenly is the size, a multiple of unit, of the equal blocks, of at most most, in which n things go.
func evenly(n, most, unit int) int {
	blocks := (n + most - 1) / most
	return (n + blocks*unit - 1) / (blocks * unit) * unit
}

// sweep runs all columns past the rows of a block.
func (g *tiling) sweep(p *product, t *tileArgs, pack []float32) {
	direct := p.b.col == 1 && p.m <= 2*g.rows
	for j := 0; j < p.n; j += wideColumns {
		n := min(wideColumns, p.n-j)
		if !direct {
			g.packB(p, pack, j, n)
		}
		for i := 0; i < n; i += g.columns {
			g.point(p, t, j+i)
			if direct && int(t.columns) == g.columns {
				t.b = pointer{&p.b.x[j+i], 4 * uintptr(p.b.row)}
			} else {
				if direct {
					g.packB(p, pack[i*blockK:], j+i, n-i)
				}
				t.b = pointer{&pack[i*blockK], 4 * uintptr(g.columns)}
			}
			g.run(t, p.m)
		}
	}
}

// check reads the last element of each operand: tiles work with bare pointers.
func (p *product) check() {
	_ = p.c.x[(p.m-1)*p.c.row+p.n-1]
	_ = p.a.x[(p.m-1)*p.a.row+(p.k-1)*p.a.col]
	_ = p.b.x[(p.k-1)*p.b.row+(p.n-1)*p.b.col]
	if p.bias != nil {
		_ = p.bias[p.n-1]
	}
}

// args is the arguments for a product whose A is read where it is. B and the columns come with point.
func (g *tiling) args(p *product) tileArgs {
	row := 4 * uintptr(p.a.row)
	return tileArgs{a: rowsOfA{&p.a.x[0], row, 4 * uintptr(p.a.col), uintptr(g.rows) * row}, c: pointer{step: 4 * uintptr(p.c.row)}, k: uintptr(p.k)}
}

// point directs t to the columns of C from j on.
func (g *tiling) point(p *product, t *tileArgs, j int) {
	t.columns = uintptr(min(g.columns, p.n-j))
	t.c.at = &p.c.x[j]
	switch {
	case p.add:
		t.init = t.c
	case p.bias != nil:
		t.init = pointer{at: &p.bias[j]}
	}
}

// packB copies n columns of B, from column j on, to panels.
func (g *tiling) packB(p *product, dst []float32, j, n int) {
	if p.b.col == 1 && n == wideColumns {
		g.packRowsWide(&dst[0], &p.b.x[j], 4*uintptr(p.b.row), uintptr(p.k), 4*uintptr(blockK*g.columns))
		return
	}
	for i := 0; i < n; i += g.columns {
		b := product{b: p.b.from(0, j+i), n: min(g.columns, n-i), k: p.k}
		g.packPanel(&b, dst[i*blockK:][:p.k*g.columns])
	}
}

// packPanel copies up to a panel's columns of B, as many to a row. Columns that are not there are zero: what comes of them is not stored, but
// might be slow to compute.
func (g *tiling) packPanel(p *product, dst []float32) {
	if p.n < g.columns {
		clear(dst)
	}
	if p.b.col == 1 {
		if p.n == g.columns && !g.slim {
			g.packRows(&dst[0], &p.b.x[0], 4*uintptr(p.b.row), uintptr(p.k))
			return
		}
		for q := range p.k {
			copy(dst[q*g.columns:], p.b.x[q*p.b.row:][:p.n])
		}
		return
	}
	j, width := 0, g.width()
	whole := whole(p.k, width)
	for ; j+width <= p.n && whole > 0; j += width {
		g.packColumns(&dst[j], &p.b.x[j*p.b.col], 4*uintptr(p.b.col), uintptr(whole), 4*uintptr(g.columns))
		for i := j; i < j+width && whole < p.k; i++ {
			scatter(dst[whole*g.columns+i:], p.b.x[i*p.b.col+whole:i*p.b.col+p.k], g.columns)
		}
	}
	for ; j < p.n; j++ {
		scatter(dst[j:], p.b.x[j*p.b.col:][:p.k], g.columns)
	}
}

// scatter writes src to every step-th element of dst.
func scatter(dst, src []float32, step int) {
	for i, v := range src {
		dst[i*step] = v
	}
}

// packA copies A by groups of a tile's rows, a link of all rows after the other; the rows of a last, smaller group likewise.
func (g *tiling) packA(p *product, t *tileArgs, dst []float32) {
	dst = dst[:p.m*p.k+slack]
	i := 0
	for ; i+g.rows <= p.m; i += g.rows {
		g.packGroup(dst[i*p.k:], p.a.from(i, 0), p.k)
	}
	for r := i; r < p.m; r++ {
		for q := range p.k {
			dst[i*p.k+q*(p.m-i)+r-i] = p.a.x[r*p.a.row+q*p.a.col]
		}
	}
	t.a, t.packed = rowsOfA{&dst[0], 4, 4 * uintptr(g.rows), 4 * uintptr(g.rows*p.k)}, true
}

func (g *tiling) packGroup(dst []float32, a matrix, k int) {
	switch whole := whole(k, g.width()); {
	case a.row == 1:
		g.packLinks(&dst[0], &a.x[0], 4*uintptr(a.col), uintptr(k))
	case a.col == 1:
		if whole > 0 {
			g.packARows(&dst[0], &a.x[0], 4*uintptr(a.row), uintptr(whole))
		}
		for r := 0; r < g.rows && whole < k; r++ {
			scatter(dst[whole*g.rows+r:], a.x[r*a.row+whole:r*a.row+k], g.rows)
		}
	default:
		for r := range g.rows {
			for q := range k {
				dst[q*g.rows+r] = a.x[r*a.row+q*a.col]
			}
		}
	}
}

// run computes m rows: groups of a tile's, and the rest, whose packed A has a narrower row.
func (g *tiling) run(t *tileArgs, m int) {
	s, rest := *t, m%g.rows
	if s.groups = uintptr(m / g.rows); s.groups > 0 {
		g.tile(&s, g.rows)
		if rest == 0 {
			return
		}
		s.advance(uintptr(g.rows))
	}
	s.groups = 1
	if s.packed {
		s.a.link = 4 * uintptr(rest)
	}
	if s.triangle < 0 {
		s.k = 1
	}
	if rest > 0 {
		g.tile(&s, rest)
	}
}

// advance goes from a group of rows to the next.
func (t *tileArgs) advance(rows uintptr) {
	t.a.at, t.b.at, t.c.at = ahead(t.a.at, t.a.group), ahead(t.b.at, t.bGroup), ahead(t.c.at, rows*t.c.step)
	if t.init.at != nil {
		t.init.at = ahead(t.init.at, rows*t.init.step)
	}
	t.k += uintptr(t.kGroup)
}

func ahead(p *float32, bytes uintptr) *float32 {
	return (*float32)(unsafe.Add(unsafe.Pointer(p), bytes))
}

// tileArgs is a block of C, some rows by up to a tile's columns, as tiles want it; asm knows the order of its fields.
type tileArgs struct {
	a       rowsOfA
	b, c    pointer // to the next link, row
	init    pointer // where chains start, 0 where it is nil
	k       uintptr // links
	groups  uintptr // of rows
	columns uintptr // that there are
	// Beside the diagonal, see asm: what row i has more than row 0, and what B and k gain from group to group.
	triangle int
	bGroup   uintptr
	kGroup   int
	packed   bool // A is, so that a last, smaller group has shorter links
}

type pointer struct {
	at   *float32
	step uintptr
}

// rowsOfA has the strides to the next row, link, and group of rows.
type rowsOfA struct {
	at               *float32
	row, link, group uintptr
}

// whole is n rounded down to turns.
func whole(n, turn int) int { return n / turn * turn }
