package kerneltest

import (
	"fmt"

	"zeroshard/kernels"
	"zeroshard/prng"
)

// list collects tests by name.
type list []test

func (l *list) add(call func(m *mem) func(Kernels), format string, args ...any) {
	*l = append(*l, test{fmt.Sprintf(format, args...), call})
}

func netTests() (tests list) {
	tests.matmul()
	tests.columns()
	tests.embed()
	tests.layernorm()
	tests.attention()
	tests.next()
	tests.elementwise()
	tests.crossEntropy()
	return tests
}

func (l *list) matmul() {
	shapes := [][3]int{{0, 3, 2}, {3, 0, 2}, {3, 2, 0}, {1, 1, 1}, {1, 17, 5}, {5, 1, 9}, {2, 2, 3}, {3, 5, 7}, {6, 16, 4}, {7, 17, 33}, {12, 32, 64},
		{13, 31, 65}, {33, 65, 17}, {2, 300, 260}, {61, 127, 131}, {130, 70, 300}, {24, 260, 520}, {5, 250, 40}, {150, 530, 20}, {1, 600, 300}, {2, 1100, 27}, {1, 70, 8}, {1, 85, 64}}
	for _, s := range shapes {
		for flags := range 16 {
			if s[0]*s[1]*s[2] > 50000 && flags/4 != flags%4 {
				continue // big ones: each transposition with one kind of start
			}
			l.product(s, flags)
		}
	}
}

// product is one MatMul of (m,n,k). flags: TransA, TransB, Add, with Bias.
func (l *list) product(s [3]int, flags int) {
	c := kernels.MatMul{M: s[0], N: s[1], K: s[2], TransA: flags&1 != 0, TransB: flags&2 != 0, Add: flags&4 != 0}
	l.add(func(m *mem) func(Kernels) {
		c := c
		c.C, c.A, c.B, c.Bias = m.f32(c.M*c.N), m.f32(c.M*c.K), m.f32(c.K*c.N), m.opt(flags&8 != 0, c.N)
		return func(k Kernels) { k.MatMul(nil, c) }
	}, "MatMul/%dx%dx%d/%s%s", c.M, c.N, c.K, [...]string{"NN", "TN", "NT", "TT"}[flags&3], [...]string{"", "+add", "+bias", "+add+bias"}[flags>>2])
}

func (l *list) columns() {
	for _, s := range [][2]int{{0, 5}, {1, 1}, {3, 7}, {20, 33}, {300, 129}, {33, 2050}} {
		l.biasGrad(s)
	}
	for _, s := range [][3]int{{1, 1, 1}, {3, 5, 7}, {2, 9, 130}} {
		l.add(func(m *mem) func(Kernels) {
			dst, x, targets := m.f32(s[0]*s[2]), m.f32(s[0]*s[1]*s[2]), m.ints(s[0]*s[1], -2, 3)
			for i := range s[1] {
				targets.Int32s()[i] = -1 // none in the first sequence
			}
			return func(k Kernels) { k.PickRows(nil, dst, x, targets, s[1], s[2]) }
		}, "PickRows/%dx%dx%d", s[0], s[1], s[2])
	}
}

// biasGrad is of s[0] rows of s[1].
func (l *list) biasGrad(s [2]int) {
	for _, add := range []bool{false, true} {
		l.add(func(m *mem) func(Kernels) {
			db, dy := m.f32(s[1]), m.f32(s[0]*s[1])
			return func(k Kernels) { k.BiasGrad(nil, db, dy, s[0], s[1], add) }
		}, "BiasGrad/%dx%d/add=%t", s[0], s[1], add)
	}
}

func (l *list) embed() {
	for _, s := range [][3]int{{0, 4, 3}, {1, 1, 1}, {2, 5, 24}, {3, 7, 33}, {4, 128, 130}} {
		l.embedding(s)
	}
}

// embedding is of (batch, seq, dim).
func (l *list) embedding(s [3]int) {
	for _, pos := range []bool{false, true} {
		for _, back := range []bool{false, true} {
			l.add(func(m *mem) func(Kernels) {
				const vocab = 11
				n := s[0] * s[1]
				e := kernels.Embed{Out: m.f32(n * s[2]), Table: m.f32(vocab * s[2]), Pos: m.opt(pos, s[1]*s[2]), Tokens: m.ints(n, 0, vocab),
					Batch: s[0], Seq: s[1], Dim: s[2]}
				return func(k Kernels) {
					if back {
						k.EmbedBackward(nil, e)
					} else {
						k.Embed(nil, e)
					}
				}
			}, "Embed/%dx%dx%d/pos=%t/backward=%t", s[0], s[1], s[2], pos, back)
		}
	}
}

func (l *list) layernorm() {
	for _, s := range [][2]int{{0, 8}, {1, 1}, {2, 24}, {5, 31}, {3, 128}, {70, 129}, {40, 771}} {
		l.norm(s)
	}
}

// norm is of s[0] rows of s[1].
func (l *list) norm(s [2]int) {
	for flags := range 4 {
		bias, known := flags&1 != 0, flags&2 != 0
		l.add(func(m *mem) func(Kernels) {
			n := s[0] * s[1]
			c := kernels.LayerNorm{Y: m.f32(n), X: m.f32(n), W: m.f32(s[1]), B: m.opt(bias, s[1]), Stats: m.f32(2 * s[0]), Rows: s[0], Dim: s[1], Eps: 1e-5, Known: known}
			return func(k Kernels) { k.LayerNorm(nil, c) }
		}, "LayerNorm/%dx%d/bias=%t/known=%t", s[0], s[1], bias, known)
	}
	for flags := range 16 {
		bias, addX, addW, inPlace := flags&1 != 0, flags&2 != 0, flags&4 != 0, flags&8 != 0
		l.add(func(m *mem) func(Kernels) {
			n := s[0] * s[1]
			c := kernels.LayerNormBackward{DX: m.f32(n), DW: m.f32(s[1]), DB: m.opt(bias, s[1]), DY: m.f32(n), X: m.f32(n), W: m.f32(s[1]),
				Stats: m.f32(2 * s[0]), Rows: s[0], Dim: s[1], AddX: addX, AddW: addW}
			if inPlace {
				c.DX = c.DY
			}
			return func(k Kernels) { k.LayerNormBackward(nil, c) }
		}, "LayerNormBackward/%dx%d/bias=%t/addX=%t/addW=%t/inPlace=%t", s[0], s[1], bias, addX, addW, inPlace)
	}
}

func (l *list) attention() {
	for _, s := range [][4]int{{0, 3, 2, 4}, {1, 1, 1, 1}, {2, 5, 2, 12}, {1, 17, 3, 8}, {1, 66, 2, 16}, {1, 131, 1, 33}, {2, 129, 2, 64}, {1, 300, 1, 20}, {1, 3, 1, 260}, {1, 140, 1, 130}, {1, 650, 1, 9}} {
		l.attend(s)
	}
}

// attend is of (batch, seq, heads, dim).
func (l *list) attend(s [4]int) {
	for _, drop := range []float32{0, 0.25} {
		n, d := s[0]*s[1], s[2]*s[3]
		make := func(m *mem) kernels.Attention {
			return kernels.Attention{Out: m.f32(n * d), QKV: m.f32(n * 3 * d), LSE: m.f32(n * s[2]), Batch: s[0], Seq: s[1], Heads: s[2], Dim: s[3],
				Drop: drop, Key: prng.New(5)}
		}
		l.add(func(m *mem) func(Kernels) {
			a := make(m)
			noLSE := a
			noLSE.Out, noLSE.LSE = m.f32(n*d), kernels.Buffer{}
			return func(k Kernels) { k.Attention(nil, a); k.Attention(nil, noLSE) }
		}, "Attention/%v/drop=%v", s, drop)
		l.add(func(m *mem) func(Kernels) {
			b := kernels.AttentionBackward{Attention: make(m), DQKV: m.f32(n * 3 * d), DOut: m.f32(n * d)}
			return func(k Kernels) { k.Attention(nil, b.Attention); k.AttentionBackward(nil, b) }
		}, "AttentionBackward/%v/drop=%v", s, drop)
	}
}

func (l *list) elementwise() {
	for _, n := range lengths {
		l.maps(n)
	}
}

// maps is of n elements.
func (l *list) maps(n int) {
	l.add(func(m *mem) func(Kernels) {
		y, x := m.f32(n), m.f32(n)
		spread(x, 6)
		return func(k Kernels) { k.GELU(nil, y, x) }
	}, "GELU/%d", n)
	l.add(func(m *mem) func(Kernels) {
		dx, y, dy, x := m.f32(n), m.f32(n), m.f32(n), m.f32(n)
		spread(x, 6)
		return func(k Kernels) { k.GELUBackward(nil, dx, y, dy, x); k.GELUBackward(nil, dy, kernels.Buffer{}, dy, x) }
	}, "GELUBackward/%d", n)
	for _, p := range []float32{0, 0.1} {
		l.add(func(m *mem) func(Kernels) {
			y, x := m.f32(n), m.f32(n)
			return func(k Kernels) { k.Dropout(nil, y, x, p, prng.New(9)); k.Dropout(nil, x, x, p, prng.New(8)) }
		}, "Dropout/%d/%v", n, p)
	}
}

// spread widens the values of x.
func spread(x kernels.Buffer, by float32) {
	v := x.Float32s()
	for i := range v {
		v[i] *= by
	}
}

func (l *list) crossEntropy() {
	for _, s := range [][2]int{{0, 4}, {1, 1}, {3, 5}, {6, 97}, {20, 256}, {7, 1003}, {1100, 33}} {
		l.entropy(s)
	}
}

// entropy is of s[0] rows of s[1].
func (l *list) entropy(s [2]int) {
	for flags := range 4 {
		grad, scaled := flags&1 != 0, flags&2 != 0
		l.add(func(m *mem) func(Kernels) {
			c := kernels.CrossEntropy{Logits: m.f32(s[0] * s[1]), Targets: m.ints(s[0], -1, s[1]), Loss: m.f64(2), Rows: s[0], Vocab: s[1], Grad: grad}
			spread(c.Logits, 8)
			if scaled {
				c.Scale = m.of(0.125)
			}
			return func(k Kernels) { k.CrossEntropy(nil, c) }
		}, "CrossEntropy/%dx%d/grad=%t/scale=%t", s[0], s[1], grad, scaled)
	}
}
