package cpu

// set is an instruction set. Its loops are called by name, not through variables: what they are given stays on the stack.
type set uint8

const (
	avx2   set = iota // and FMA and F16C
	avx512            // F, BW, DQ and VL
)

// width is the floats in a vector.
func (s set) width() int {
	if s == avx512 {
		return 16
	}
	return 8
}

// tiles are those that asm writes for s.
func (s set) tiles() *tiling {
	if s == avx512 {
		return &tiling{s, 12, 32, false}
	}
	return &tiling{s, 6, 16, false}
}

// flatTiles is the tiles for so many rows of A, columns of Cᵀ: no wider than they need be. Where vectors could be wider, those of AVX2 are as
// fast or faster.
func flatTiles(m int) tiling {
	if m <= 8 {
		return tiling{avx2, 12, 8, true}
	}
	return *avx2.tiles()
}

func (s set) packRows(dst, src *float32, ld, k uintptr) {
	if s == avx512 {
		packRowsAVX512(dst, src, ld, k)
	} else {
		packRowsAVX2(dst, src, ld, k)
	}
}

func (s set) packRowsWide(dst, src *float32, ld, k, panel uintptr) {
	if s == avx512 {
		packRowsWideAVX512(dst, src, ld, k, panel)
	} else {
		packRowsWideAVX2(dst, src, ld, k, panel)
	}
}

func (s set) packColumns(dst, src *float32, ld, k, step uintptr) {
	if s == avx512 {
		packColumnsAVX512(dst, src, ld, k, step)
	} else {
		packColumnsAVX2(dst, src, ld, k, step)
	}
}

func (s set) packLinks(dst, src *float32, ld, k uintptr) {
	if s == avx512 {
		packLinksAVX512(dst, src, ld, k)
	} else {
		packLinksAVX2(dst, src, ld, k)
	}
}

func (s set) packARows(dst, src *float32, ld, k uintptr) {
	if s == avx512 {
		packARowsAVX512(dst, src, ld, k)
	} else {
		packARowsAVX2(dst, src, ld, k)
	}
}

// tile computes so many rows.
func (g *tiling) tile(t *tileArgs, rows int) {
	switch {
	case g.slim:
		slimAVX2(t, rows)
	case g.set == avx512:
		tileAVX512(t, rows)
	default:
		tileAVX2(t, rows)
	}
}

func tileAVX2(t *tileArgs, rows int) {
	switch rows {
	case 1:
		tile1AVX2(t)
	case 2:
		tile2AVX2(t)
	case 3:
		tile3AVX2(t)
	case 4:
		tile4AVX2(t)
	case 5:
		tile5AVX2(t)
	case 6:
		tile6AVX2(t)
	}
}

func tileAVX512(t *tileArgs, rows int) {
	switch rows {
	case 1:
		tile1AVX512(t)
	case 2:
		tile2AVX512(t)
	case 3:
		tile3AVX512(t)
	case 4:
		tile4AVX512(t)
	case 5:
		tile5AVX512(t)
	case 6:
		tile6AVX512(t)
	case 7:
		tile7AVX512(t)
	case 8:
		tile8AVX512(t)
	case 9:
		tile9AVX512(t)
	case 10:
		tile10AVX512(t)
	case 11:
		tile11AVX512(t)
	case 12:
		tile12AVX512(t)
	}
}

func slimAVX2(t *tileArgs, rows int) {
	switch rows {
	case 1:
		slim1AVX2(t)
	case 2:
		slim2AVX2(t)
	case 3:
		slim3AVX2(t)
	case 4:
		slim4AVX2(t)
	case 5:
		slim5AVX2(t)
	case 6:
		slim6AVX2(t)
	case 7:
		slim7AVX2(t)
	case 8:
		slim8AVX2(t)
	case 9:
		slim9AVX2(t)
	case 10:
		slim10AVX2(t)
	case 11:
		slim11AVX2(t)
	case 12:
		slim12AVX2(t)
	}
}
