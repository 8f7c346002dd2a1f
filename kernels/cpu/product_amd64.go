package cpu

import "unsafe"

// Blocks of the AVX2 product. A tile of C, tileRows by tileColumns, stays in registers over blockK links. A panel of B, blockK by
// tileColumns, stays in the first-level cache while a block of A, blockM by blockK, passes it: from the second level where it is
// small, else from the third: 4 bytes a cycle are easily had, and the more rows, the fewer times B is packed. Panels are packed several at
// a time, so that a row of B is read by whole cache lines of one page. A block of C, of blockC floats, is done with all links before
// the next, so that it is in the third level when they go on.
const (
	tileRows    = 6
	tileColumns = 16
	blockK      = 256
	blockM      = 516
	blockC      = 768 << 10
	panels      = 4
	panelFloats = blockK * tileColumns
	floatsAVX2  = panels*panelFloats + blockM*blockK + 2 // packARowsAVX2 writes two past the end
)

const _ = uint(packFloats - floatsAVX2) // must not be negative

// multiplyAVX2 packs what tiles could not read at full speed: panels of B, unless few rows would use them, and A where enough
// columns will.
func multiplyAVX2(p product, pack []float32) {
	if p.k == 0 || p.add && p.bias != nil {
		p.begin()
		p.add, p.bias = true, nil
	}
	if p.m == 0 || p.n == 0 || p.k == 0 {
		return
	}
	p.check()
	if p.b.col != 1 && p.m <= tileColumns && p.k*tileColumns <= flippedFloats {
		p.flipped(pack)
		return
	}
	rows, columns := evenly(p.m, blockM, tileRows), p.n
	if p.k > blockK {
		columns = evenly(p.n, max(blockC/rows, panels*tileColumns), panels*tileColumns)
	}
	for i := 0; i < p.m; i += rows {
		for j := 0; j < p.n; j += columns {
			p.block(i, j, min(rows, p.m-i), min(columns, p.n-j)).links(pack)
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
func (p product) links(pack []float32) {
	for q := 0; q < p.k; q += blockK {
		block := p
		block.a, block.b, block.k = p.a.from(0, q), p.b.from(q, 0), min(blockK, p.k-q)
		if q > 0 { // go on with what C holds
			block.add, block.bias = true, nil
		}
		t := block.tiles()
		if p.n >= 192 || p.a.col != 1 && p.n > 2*tileColumns {
			block.packA(&t, pack[panels*panelFloats:])
		}
		block.sweepAVX2(&t, pack)
	}
}

// evenly is the size, a multiple of unit, of the equal blocks, of at most most, in which n things go.
func evenly(n, most, unit int) int {
	blocks := (n + most - 1) / most
	return (n + blocks*unit - 1) / (blocks * unit) * unit
}

// sweepAVX2 runs all columns past the rows of a block.
func (p *product) sweepAVX2(t *tileArgs, pack []float32) {
	direct := p.b.col == 1 && p.m <= 2*tileRows
	for j := 0; j < p.n; j += panels * tileColumns {
		n := min(panels*tileColumns, p.n-j)
		if !direct {
			p.packB(pack, j, n)
		}
		for i := 0; i < n; i += tileColumns {
			p.columns(t, j+i)
			if direct && t.columns == tileColumns {
				t.b = pointer{&p.b.x[j+i], 4 * uintptr(p.b.row)}
			} else {
				if direct {
					p.packB(pack[i/tileColumns*panelFloats:], j+i, n-i)
				}
				t.b = pointer{&pack[i/tileColumns*panelFloats], 4 * tileColumns}
			}
			t.run(p.m)
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

// tiles is the arguments for a product whose A is read where it is. B and the columns come with panel.
func (p *product) tiles() tileArgs {
	row := 4 * uintptr(p.a.row)
	return tileArgs{a: rowsOfA{&p.a.x[0], row, 4 * uintptr(p.a.col), tileRows * row}, c: pointer{step: 4 * uintptr(p.c.row)}, k: uintptr(p.k)}
}

// columns points t at columns j to j+16 of C.
func (p *product) columns(t *tileArgs, j int) {
	t.columns = uintptr(min(tileColumns, p.n-j))
	t.c.at = &p.c.x[j]
	switch {
	case p.add:
		t.init = t.c
	case p.bias != nil:
		t.init = pointer{at: &p.bias[j]}
	}
}

// packB copies n columns of B, from column j on, to panels.
func (p *product) packB(dst []float32, j, n int) {
	if p.b.col == 1 && n == panels*tileColumns {
		packRows4AVX2(&dst[0], &p.b.x[j], 4*uintptr(p.b.row), uintptr(p.k), 4*panelFloats)
		return
	}
	for i := 0; i < n; i += tileColumns {
		b := product{b: p.b.from(0, j+i), n: min(tileColumns, n-i), k: p.k}
		b.packPanel(dst[i/tileColumns*panelFloats:][:p.k*tileColumns])
	}
}

// packPanel copies up to 16 columns of B, 16 to a row. Columns that are not there are zero: what comes of them is not stored, but
// might be slow to compute.
func (p *product) packPanel(dst []float32) {
	if p.n < tileColumns {
		clear(dst)
	}
	if p.b.col == 1 {
		if p.n == tileColumns {
			packRowsAVX2(&dst[0], &p.b.x[0], 4*uintptr(p.b.row), uintptr(p.k))
			return
		}
		for q := range p.k {
			copy(dst[q*tileColumns:], p.b.x[q*p.b.row:][:p.n])
		}
		return
	}
	j, whole := 0, whole(p.k, turn)
	for ; j+turn <= p.n && whole > 0; j += turn {
		packColumnsAVX2(&dst[j], &p.b.x[j*p.b.col], 4*uintptr(p.b.col), uintptr(whole))
		for i := j; i < j+turn && whole < p.k; i++ {
			scatter(dst[whole*tileColumns+i:], p.b.x[i*p.b.col+whole:i*p.b.col+p.k], tileColumns)
		}
	}
	for ; j < p.n; j++ {
		scatter(dst[j:], p.b.x[j*p.b.col:][:p.k], tileColumns)
	}
}

// scatter writes src to every step-th element of dst.
func scatter(dst, src []float32, step int) {
	for i, v := range src {
		dst[i*step] = v
	}
}

// packA copies A by groups of 6 rows, a link of all 6 after the other; the rows of a last, smaller group likewise.
func (p *product) packA(t *tileArgs, dst []float32) {
	size := tileRows * p.k
	dst = dst[:p.m*p.k+2] // packARowsAVX2 writes two past the end
	i := 0
	for ; i+tileRows <= p.m; i += tileRows {
		p.packGroup(dst[i*p.k:], p.a.from(i, 0))
	}
	for r := i; r < p.m; r++ {
		for q := range p.k {
			dst[i*p.k+q*(p.m-i)+r-i] = p.a.x[r*p.a.row+q*p.a.col]
		}
	}
	t.a, t.packed = rowsOfA{&dst[0], 4, 4 * tileRows, 4 * uintptr(size)}, true
}

func (p *product) packGroup(dst []float32, a matrix) {
	switch whole := whole(p.k, turn); {
	case a.row == 1:
		packAAVX2(&dst[0], &a.x[0], 4*uintptr(a.col), uintptr(p.k))
	case a.col == 1:
		if whole > 0 {
			packARowsAVX2(&dst[0], &a.x[0], 4*uintptr(a.row), uintptr(whole))
		}
		for r := 0; r < tileRows && whole < p.k; r++ {
			scatter(dst[whole*tileRows+r:], a.x[r*a.row+whole:r*a.row+p.k], tileRows)
		}
	default:
		for r := range tileRows {
			for q := range p.k {
				dst[q*tileRows+r] = a.x[r*a.row+q*a.col]
			}
		}
	}
}

// move goes to row i and link q.
func (t *tileArgs) move(i, q uintptr) {
	t.a.at = ahead(t.a.at, i/tileRows*t.a.group+i%tileRows*t.a.row+q*t.a.link)
	t.b.at = ahead(t.b.at, q*t.b.step)
	t.c.at = ahead(t.c.at, i*t.c.step)
	if t.init.at != nil {
		t.init.at = ahead(t.init.at, i*t.init.step)
	}
}

func ahead(p *float32, bytes uintptr) *float32 {
	return (*float32)(unsafe.Add(unsafe.Pointer(p), bytes))
}

// run computes m rows: groups of six, and the rest, whose packed A has a narrower row.
func (t *tileArgs) run(m int) {
	masked := t.columns < tileColumns
	if t.groups = uintptr(m / tileRows); t.groups > 0 {
		if masked {
			tile6mAVX2(t)
		} else {
			tile6AVX2(t)
		}
	}
	rest := m % tileRows
	if rest == 0 {
		return
	}
	s := *t
	s.move(uintptr(m-rest), 0)
	s.groups = 1
	if t.packed {
		s.a.link = 4 * uintptr(rest)
	}
	if t.triangle < 0 {
		s.k = 1
	}
	s.rest(rest, masked)
}

func (t *tileArgs) rest(rows int, masked bool) {
	switch {
	case rows == 1 && masked:
		tile1mAVX2(t)
	case rows == 2 && masked:
		tile2mAVX2(t)
	case rows == 3 && masked:
		tile3mAVX2(t)
	case rows == 4 && masked:
		tile4mAVX2(t)
	case rows == 5 && masked:
		tile5mAVX2(t)
	case rows == 1:
		tile1AVX2(t)
	case rows == 2:
		tile2AVX2(t)
	case rows == 3:
		tile3AVX2(t)
	case rows == 4:
		tile4AVX2(t)
	case rows == 5:
		tile5AVX2(t)
	}
}
