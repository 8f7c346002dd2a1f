package cpu

// The loops of loops_amd64.go with vectors of 512 bits.

//go:noescape
func tile1AVX512(t *tileArgs)

//go:noescape
func tile2AVX512(t *tileArgs)

//go:noescape
func tile3AVX512(t *tileArgs)

//go:noescape
func tile4AVX512(t *tileArgs)

//go:noescape
func tile5AVX512(t *tileArgs)

//go:noescape
func tile6AVX512(t *tileArgs)

//go:noescape
func tile7AVX512(t *tileArgs)

//go:noescape
func tile8AVX512(t *tileArgs)

//go:noescape
func tile9AVX512(t *tileArgs)

//go:noescape
func tile10AVX512(t *tileArgs)

//go:noescape
func tile11AVX512(t *tileArgs)

//go:noescape
func tile12AVX512(t *tileArgs)

//go:noescape
func packRowsAVX512(dst, src *float32, ld, k uintptr)

//go:noescape
func packRowsWideAVX512(dst, src *float32, ld, k, panel uintptr)

//go:noescape
func packColumnsAVX512(dst, src *float32, ld, k, step uintptr)

//go:noescape
func packLinksAVX512(dst, src *float32, ld, k uintptr)

//go:noescape
func packARowsAVX512(dst, src *float32, ld, k uintptr)

//go:noescape
func dotsAVX512(dst, src *float32, ld, k uintptr, a *float32)

//go:noescape
func addAVX512(dst, a, b []float32)

//go:noescape
func addStreamAVX512(dst, a, b []float32)

//go:noescape
func mulAVX512(dst, a, b []float32)

//go:noescape
func scaleAVX512(dst []float32, f float32)

//go:noescape
func softmaxAVX512(s []float32, scale, highest float32) (next, sum float32)

//go:noescape
func scoreBackAVX512(p, ds []float32, c *scoreConst)

//go:noescape
func scoreBackDropAVX512(p, ds, keep []float32, c *scoreConst)

//go:noescape
func keepAVX512(dst []float32, c *keepArgs)

//go:noescape
func foldAVX512(lanes *[32]float32) float32

//go:noescape
func geluAVX512(y, x []float32)

//go:noescape
func geluGradAVX512(dx, y, dy, x []float32)

//go:noescape
func geluSlopeAVX512(dx, dy, x []float32)

//go:noescape
func sumAVX512(lanes *[32]float32, x []float32)

//go:noescape
func dotAVX512(lanes *[32]float32, x, y []float32)

//go:noescape
func maxAVX512(lanes *[32]float32, x []float32)

//go:noescape
func expSumAVX512(lanes *[32]float32, dst, x []float32, max float32)

//go:noescape
func expSumOnlyAVX512(lanes *[32]float32, x []float32, max float32)

//go:noescape
func addRowsAVX512(dst, x []float32, ld uintptr)

//go:noescape
func linkRowsAVX512(dst, x []float32, ld uintptr, a *float32)

//go:noescape
func normSquaresAVX512(lanes *[32]float32, x []float32, mean float32)

//go:noescape
func normApplyAVX512(y, x, w, b []float32, c *normConst)

//go:noescape
func normScaleAVX512(y, x, w []float32, c *normConst)

//go:noescape
func normSumsAVX512(lanes *[64]float32, dy, x, w []float32, c *normConst)

//go:noescape
func normBackAVX512(dx, dy, x, w []float32, c *normConst)

//go:noescape
func normBackAddAVX512(dx, dy, x, w []float32, c *normConst)

//go:noescape
func normParamsAVX512(dw, db, dy, x []float32, c *normConst)

//go:noescape
func normWeightAVX512(dw, dy, x []float32, c *normConst)

//go:noescape
func adamwAVX512(p, g, m, v []float32, c *adamwConst)

//go:noescape
func sgdAVX512(p, g, m []float32, c *sgdConst)

//go:noescape
func sgdPlainAVX512(p, g []float32, c *sgdConst)

//go:noescape
func widenBF16AVX512(dst []float32, src []uint16)

//go:noescape
func widenF16AVX512(dst []float32, src []uint16)

//go:noescape
func narrowBF16AVX512(dst []uint16, src []float32)

//go:noescape
func widenBF16StreamAVX512(dst []float32, src []uint16)

//go:noescape
func widenF16StreamAVX512(dst []float32, src []uint16)

//go:noescape
func narrowBF16StreamAVX512(dst []uint16, src []float32)
