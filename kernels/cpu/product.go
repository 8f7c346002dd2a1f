package cpu

// product is C (m,n) = start + A·B, where element (i,p) of A is a[i·ai+p·ap], (p,j) of B is b[p·bp+j·bj], and rows of C are
// ldc apart. One of bp and bj is 1. Every element is a chain over p ascending, see package ref.
type product struct {
	c, a, b, bias []float32
	ldc           int
	ai, ap        int
	bp, bj        int
	m, n, k       int
	add           bool // chains start from C (+ bias), else from bias or 0
}

// Blocks of the portable product: a block of B stays in the second-level cache while all rows of A pass.
const (
	packK = 128
	packN = 256
)

// rows is where the chains begin: C becomes start, and the rest of the product adds to it.
func (p *product) begin() {
	for i := range p.m {
		c := p.c[i*p.ldc:][:p.n]
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

// multiply is the portable product. Its inner loop runs along a row of C, two rows and four p at a time: that is as many scalars
// as Go keeps in registers, and each element's additions stay in the order of p.
func multiply(p product, pack []float32) {
	p.begin()
	if p.k == 0 {
		return
	}
	if p.bj != 1 && p.m < 8 {
		p.dots()
		return
	}
	for lo := 0; lo < p.n; lo += packN {
		n := min(packN, p.n-lo)
		for from := 0; from < p.k; from += packK {
			k := min(packK, p.k-from)
			block := product{c: p.c[lo:], a: p.a[from*p.ap:], b: p.b[from*p.bp+lo*p.bj:], ldc: p.ldc, ai: p.ai, ap: p.ap, bp: p.bp, bj: 1, m: p.m, n: n, k: k}
			if p.bj != 1 {
				transpose(pack, block.b, k, n, p.bj)
				block.b, block.bp = pack, n
			}
			block.sweep()
		}
	}
}

// transpose packs B (k,n), stored by columns ld apart, by rows.
func transpose(dst, b []float32, k, n, ld int) {
	for j := range n {
		for p, v := range b[j*ld:][:k] {
			dst[p*n+j] = v
		}
	}
}

// sweep adds the product of one block, rows of B contiguous.
func (p *product) sweep() {
	i := 0
	for ; i+2 <= p.m; i += 2 {
		c0, c1 := p.c[i*p.ldc:][:p.n], p.c[(i+1)*p.ldc:][:p.n]
		a0, a1 := p.a[i*p.ai:], p.a[(i+1)*p.ai:]
		q := 0
		for ; q+4 <= p.k; q += 4 {
			s := q * p.ap
			x := [4]float32{a0[s], a0[s+p.ap], a0[s+2*p.ap], a0[s+3*p.ap]}
			y := [4]float32{a1[s], a1[s+p.ap], a1[s+2*p.ap], a1[s+3*p.ap]}
			rows2x4(c0, c1, p.b[q*p.bp:], p.bp, x, y)
		}
		for ; q < p.k; q++ {
			axpy(c0, a0[q*p.ap], p.b[q*p.bp:])
			axpy(c1, a1[q*p.ap], p.b[q*p.bp:])
		}
	}
	if i < p.m {
		for q := range p.k {
			axpy(p.c[i*p.ldc:][:p.n], p.a[i*p.ai+q*p.ap], p.b[q*p.bp:])
		}
	}
}

// rows2x4 continues the chains of two rows of C by four links.
func rows2x4(c, d, b []float32, ldb int, x, y [4]float32) {
	d = d[:len(c)]
	b0, b1, b2, b3 := b[:len(c)], b[ldb:][:len(c)], b[2*ldb:][:len(c)], b[3*ldb:][:len(c)]
	x0, x1, x2, x3 := x[0], x[1], x[2], x[3]
	y0, y1, y2, y3 := y[0], y[1], y[2], y[3]
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

// dots is the product of few rows with a B stored by columns: not worth a transpose. Four chains go side by side.
func (p *product) dots() {
	for i := range p.m {
		c, a := p.c[i*p.ldc:][:p.n], p.a[i*p.ai:]
		j := 0
		for ; j+4 <= p.n; j += 4 {
			b0, b1, b2, b3 := p.b[j*p.bj:], p.b[(j+1)*p.bj:], p.b[(j+2)*p.bj:], p.b[(j+3)*p.bj:]
			s0, s1, s2, s3 := c[j], c[j+1], c[j+2], c[j+3]
			for q := range p.k {
				x := a[q*p.ap]
				s0 += float32(x * b0[q])
				s1 += float32(x * b1[q])
				s2 += float32(x * b2[q])
				s3 += float32(x * b3[q])
			}
			c[j], c[j+1], c[j+2], c[j+3] = s0, s1, s2, s3
		}
		for ; j < p.n; j++ {
			for q := range p.k {
				c[j] += float32(a[q*p.ap] * p.b[j*p.bj+q])
			}
		}
	}
}
