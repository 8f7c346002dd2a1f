package cpu

// The loops of loops_amd64.s, which asm generates: see there for what they do. Slices have lengths that are multiples of a
// turn: rowTurn for sums along rows, add, mul, and what has an exp, turn else; keep's are multiples of its own. Only the first slice's (of
// sums along rows: x's) length counts. Strides are in bytes.

//go:noescape
func tile1AVX2(t *tileArgs)

//go:noescape
func tile2AVX2(t *tileArgs)

//go:noescape
func tile3AVX2(t *tileArgs)

//go:noescape
func tile4AVX2(t *tileArgs)

//go:noescape
func tile5AVX2(t *tileArgs)

//go:noescape
func tile6AVX2(t *tileArgs)

//go:noescape
func slim1AVX2(t *tileArgs)

//go:noescape
func slim2AVX2(t *tileArgs)

//go:noescape
func slim3AVX2(t *tileArgs)

//go:noescape
func slim4AVX2(t *tileArgs)

//go:noescape
func slim5AVX2(t *tileArgs)

//go:noescape
func slim6AVX2(t *tileArgs)

//go:noescape
func slim7AVX2(t *tileArgs)

//go:noescape
func slim8AVX2(t *tileArgs)

//go:noescape
func slim9AVX2(t *tileArgs)

//go:noescape
func slim10AVX2(t *tileArgs)

//go:noescape
func slim11AVX2(t *tileArgs)

//go:noescape
func slim12AVX2(t *tileArgs)

//go:noescape
func packRowsAVX2(dst, src *float32, ld, k uintptr)

//go:noescape
func packRowsWideAVX2(dst, src *float32, ld, k, panel uintptr)

//go:noescape
func packColumnsAVX2(dst, src *float32, ld, k, step uintptr)

//go:noescape
func packLinksAVX2(dst, src *float32, ld, k uintptr)

//go:noescape
func packARowsAVX2(dst, src *float32, ld, k uintptr)

//go:noescape
func dotsAVX2(dst, src *float32, ld, k uintptr, a *float32)

//go:noescape
func addAVX2(dst, a, b []float32)

//go:noescape
func addStreamAVX2(dst, a, b []float32)

//go:noescape
func mulAVX2(dst, a, b []float32)

//go:noescape
func scaleAVX2(dst []float32, f float32)

//go:noescape
func softmaxAVX2(s []float32, scale, highest float32) (next, sum float32)

//go:noescape
func scoreBackAVX2(p, ds []float32, c *scoreConst)

//go:noescape
func scoreBackDropAVX2(p, ds, keep []float32, c *scoreConst)

//go:noescape
func keepAVX2(dst []float32, c *keepArgs)

//go:noescape
func foldAVX2(lanes *[32]float32) float32

//go:noescape
func geluAVX2(y, x []float32)

//go:noescape
func geluGradAVX2(dx, y, dy, x []float32)

//go:noescape
func geluSlopeAVX2(dx, dy, x []float32)

//go:noescape
func sumAVX2(lanes *[32]float32, x []float32)

//go:noescape
func dotAVX2(lanes *[32]float32, x, y []float32)

//go:noescape
func maxAVX2(lanes *[32]float32, x []float32)

//go:noescape
func expSumAVX2(lanes *[32]float32, dst, x []float32, max float32)

//go:noescape
func expSumOnlyAVX2(lanes *[32]float32, x []float32, max float32)

//go:noescape
func squaresAVX2(sums []float64, x []float32)

//go:noescape
func addRowsAVX2(dst, x []float32, ld uintptr)

//go:noescape
func linkRowsAVX2(dst, x []float32, ld uintptr, a *float32)

//go:noescape
func normSquaresAVX2(lanes *[32]float32, x []float32, mean float32)

//go:noescape
func normApplyAVX2(y, x, w, b []float32, c *normConst)

//go:noescape
func normScaleAVX2(y, x, w []float32, c *normConst)

//go:noescape
func normSumsAVX2(lanes *[64]float32, dy, x, w []float32, c *normConst)

//go:noescape
func normBackAVX2(dx, dy, x, w []float32, c *normConst)

//go:noescape
func normBackAddAVX2(dx, dy, x, w []float32, c *normConst)

//go:noescape
func normParamsAVX2(dw, db, dy, x []float32, c *normConst)

//go:noescape
func normWeightAVX2(dw, dy, x []float32, c *normConst)

//go:noescape
func adamwAVX2(p, g, m, v []float32, c *adamwConst)

//go:noescape
func sgdAVX2(p, g, m []float32, c *sgdConst)

//go:noescape
func sgdPlainAVX2(p, g []float32, c *sgdConst)

//go:noescape
func widenBF16AVX2(dst []float32, src []uint16)

//go:noescape
func widenF16AVX2(dst []float32, src []uint16)

//go:noescape
func narrowF16AVX2(dst []uint16, src []float32)

//go:noescape
func narrowBF16AVX2(dst []uint16, src []float32)

//go:noescape
func widenBF16StreamAVX2(dst []float32, src []uint16)

//go:noescape
func widenF16StreamAVX2(dst []float32, src []uint16)

//go:noescape
func narrowF16StreamAVX2(dst []uint16, src []float32)

//go:noescape
func narrowBF16StreamAVX2(dst []uint16, src []float32)
