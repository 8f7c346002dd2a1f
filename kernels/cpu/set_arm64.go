package cpu

import "unsafe"

// The loops of loops_arm64.s, which asm/neon generates: whole tiles, without a diagonal.

//go:noescape
func tile1NEON(t *tileArgs)

//go:noescape
func tile2NEON(t *tileArgs)

//go:noescape
func tile3NEON(t *tileArgs)

//go:noescape
func tile4NEON(t *tileArgs)

//go:noescape
func tile5NEON(t *tileArgs)

//go:noescape
func tile6NEON(t *tileArgs)

// set is NEON, which every arm64 has.
type set struct{}

const neonRows, neonColumns = 6, 16

// width is the floats in a vector.
func (set) width() int { return 4 }

func (s set) tiles() *tiling { return &tiling{s, neonRows, neonColumns, false} }

func flatTiles(int) tiling { return *set{}.tiles() }

// multiply leaves all to tiles.
func (g *tiling) multiply(p product, pack []float32) {
	if p.ready() {
		g.tiled(p, pack)
	}
}

// tile computes so many rows.
func (g *tiling) tile(t *tileArgs, rows int) {
	if t.columns == neonColumns {
		tileNEON(t, rows)
		return
	}
	// A part of the columns: the tile is computed beside C.
	var block [neonRows][neonColumns]float32
	for {
		s, n := *t, int(t.columns)
		s.c, s.groups = pointer{&block[0][0], 4 * neonColumns}, 1
		if t.init.at != nil {
			for i := range rows {
				copy(block[i][:], unsafe.Slice(ahead(t.init.at, uintptr(i)*t.init.step), n))
			}
			s.init = s.c
		}
		tileNEON(&s, rows)
		for i := range rows {
			copy(unsafe.Slice(ahead(t.c.at, uintptr(i)*t.c.step), n), block[i][:])
		}
		if t.groups--; t.groups == 0 {
			return
		}
		t.advance(uintptr(rows))
	}
}

func tileNEON(t *tileArgs, rows int) {
	switch rows {
	case 1:
		tile1NEON(t)
	case 2:
		tile2NEON(t)
	case 3:
		tile3NEON(t)
	case 4:
		tile4NEON(t)
	case 5:
		tile5NEON(t)
	case 6:
		tile6NEON(t)
	}
}

// The copies of blocks of operands into the order in which tiles read them. Strides are in bytes.

func panelRow(p *float32, bytes uintptr) *[neonColumns]float32 {
	return (*[neonColumns]float32)(unsafe.Pointer(ahead(p, bytes)))
}

func tileColumn(p *float32, bytes uintptr) *[neonRows]float32 {
	return (*[neonRows]float32)(unsafe.Pointer(ahead(p, bytes)))
}

// packRows copies k rows of a panel's columns, ld apart.
func (set) packRows(dst, src *float32, ld, k uintptr) {
	for q := range k {
		*panelRow(dst, q*4*neonColumns) = *panelRow(src, q*ld)
	}
}

// packRowsWide copies k rows of wideColumns, to panels that are panel bytes apart.
func (set) packRowsWide(dst, src *float32, ld, k, panel uintptr) {
	for q := range k {
		for p := range uintptr(wideColumns / neonColumns) {
			*panelRow(dst, p*panel+q*4*neonColumns) = *panelRow(src, q*ld+p*4*neonColumns)
		}
	}
}

// packColumns transposes four rows of src, ld apart, k floats each: dst[q·step/4 + j] = src[j][q].
func (set) packColumns(dst, src *float32, ld, k, step uintptr) {
	for q := range k {
		*(*[4]float32)(unsafe.Pointer(ahead(dst, q*step))) = [4]float32{*ahead(src, 4*q), *ahead(src, ld+4*q), *ahead(src, 2*ld+4*q), *ahead(src, 3*ld+4*q)}
	}
}

// packLinks copies k rows of a tile's rows' floats, ld apart.
func (set) packLinks(dst, src *float32, ld, k uintptr) {
	for q := range k {
		*tileColumn(dst, q*4*neonRows) = *tileColumn(src, q*ld)
	}
}

// packARows transposes a tile's rows of src, ld apart, k floats each.
func (set) packARows(dst, src *float32, ld, k uintptr) {
	for q := range k {
		for i := range uintptr(neonRows) {
			*ahead(dst, 4*(q*neonRows+i)) = *ahead(src, i*ld+4*q)
		}
	}
}
