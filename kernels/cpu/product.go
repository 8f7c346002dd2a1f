package cpu

// matrix is a view: element (i,j) is x[i·row + j·col].
type matrix struct {
	x        []float32
	row, col int
}

// from is the view from element (i,j) on, empty where that lies past the end: the corner of an operand without elements.
func (v matrix) from(i, j int) matrix {
	v.x = v.x[min(i*v.row+j*v.col, len(v.x)):]
	return v
}

// product is C (m,n) = start + A (m,k) · B (k,n). Every element is a chain over k ascending, see package ref. C's columns are
// contiguous, and B's rows or columns.
type product struct {
	c, a, b matrix
	bias    []float32
	m, n, k int
	add     bool // chains start from C (+ bias), else from bias or 0
}

// Blocks of the portable product: a block of B stays in the second-level cache while all rows of A pass.
const (
	packK = 128
	packN = 256
)

// begin makes C the start of the chains: the rest of the product adds to it.
func (p *product) begin() {
	for i := range p.m {
		c := p.c.x[i*p.c.row:][:p.n]
		switch {
		case p.add && p.bias != nil:
			add(c, c, p.bias)
		case p.add:
		case p.bias != nil:
			copy(c, p.bias)
		default:
			clear(c)
		}
	}
}

// multiply is the portable product. Its inner loop runs along a row of C, two rows and four links at a time: that is as many
// scalars as Go keeps in registers, and each element's additions stay in the order of k.
func multiply(p product, pack []float32) {
	p.begin()
	if p.k == 0 {
		return
	}
	if p.b.col != 1 && p.m < 8 {
		p.fourChains()
		return
	}
	for j := 0; j < p.n; j += packN {
		for q := 0; q < p.k; q += packK {
			block := product{c: p.c.from(0, j), a: p.a.from(0, q), b: p.b.from(q, j), m: p.m, n: min(packN, p.n-j), k: min(packK, p.k-q)}
			if p.b.col != 1 {
				block.transpose(pack)
			}
			block.sweep()
		}
	}
}

// transpose moves a B stored by columns into pack, by rows.
func (p *product) transpose(pack []float32) {
	for j := range p.n {
		for q, v := range p.b.x[j*p.b.col:][:p.k] {
			pack[q*p.n+j] = v
		}
	}
	p.b = matrix{pack, p.n, 1}
}

// sweep adds the product of one block, rows of B contiguous.
func (p *product) sweep() {
	i := 0
	for ; i+2 <= p.m; i += 2 {
		c0, c1 := p.c.x[i*p.c.row:][:p.n], p.c.x[(i+1)*p.c.row:][:p.n]
		a0, a1 := p.a.x[i*p.a.row:], p.a.x[(i+1)*p.a.row:]
		q, step := 0, p.a.col
		for ; q+4 <= p.k; q += 4 {
			s := q * step
			f := [2][4]float32{{a0[s], a0[s+step], a0[s+2*step], a0[s+3*step]}, {a1[s], a1[s+step], a1[s+2*step], a1[s+3*step]}}
			rows2x4(c0, c1, p.b.x[q*p.b.row:], p.b.row, f)
		}
		for ; q < p.k; q++ {
			axpy(c0, a0[q*step], p.b.x[q*p.b.row:])
			axpy(c1, a1[q*step], p.b.x[q*p.b.row:])
		}
	}
	if i < p.m {
		for q := range p.k {
			axpy(p.c.x[i*p.c.row:][:p.n], p.a.x[i*p.a.row+q*p.a.col], p.b.x[q*p.b.row:])
		}
	}
}

// rows2x4 continues the chains of two rows of C by four links with factors f.
func rows2x4(c, d, b []float32, ldb int, f [2][4]float32) {
	d = d[:len(c)]
	b0, b1, b2, b3 := b[:len(c)], b[ldb:][:len(c)], b[2*ldb:][:len(c)], b[3*ldb:][:len(c)]
	x0, x1, x2, x3 := f[0][0], f[0][1], f[0][2], f[0][3]
	y0, y1, y2, y3 := f[1][0], f[1][1], f[1][2], f[1][3]
	for j := range c {
		v := b0[j]
		s, t := c[j]+float32(x0*v), d[j]+float32(y0*v)
		v = b1[j]
		s += float32(x1 * v)
		t += float32(y1 * v)
		v = b2[j]
		s += float32(x2 * v)
		t += float32(y2 * v)
		v = b3[j]
		s += float32(x3 * v)
		t += float32(y3 * v)
		c[j], d[j] = s, t
	}
}

// axpy continues the chains of a row of C by one link.
func axpy(c []float32, x float32, b []float32) {
	b = b[:len(c)]
	for j := range c {
		c[j] += float32(x * b[j])
	}
}

// fourChains is the product of few rows with a B stored by columns: not worth a transpose. Four chains go side by side.
func (p *product) fourChains() {
	col, step := p.b.col, p.a.col
	for i := range p.m {
		c, a := p.c.x[i*p.c.row:][:p.n], p.a.x[i*p.a.row:]
		j := 0
		for ; j+4 <= p.n; j += 4 {
			b0, b1, b2, b3 := p.b.x[j*col:], p.b.x[(j+1)*col:], p.b.x[(j+2)*col:], p.b.x[(j+3)*col:]
			s0, s1, s2, s3 := c[j], c[j+1], c[j+2], c[j+3]
			for q := range p.k {
				x := a[q*step]
				s0 += float32(x * b0[q])
				s1 += float32(x * b1[q])
				s2 += float32(x * b2[q])
				s3 += float32(x * b3[q])
			}
			c[j], c[j+1], c[j+2], c[j+3] = s0, s1, s2, s3
		}
		for ; j < p.n; j++ {
			for q := range p.k {
				c[j] += float32(a[q*step] * p.b.x[j*col+q])
			}
		}
	}
}
