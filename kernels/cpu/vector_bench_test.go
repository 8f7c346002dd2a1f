package cpu_test

import (
	"fmt"
	"testing"

	"zeroshard/device"
	devcpu "zeroshard/device/cpu"
	"zeroshard/internal/exact"
	"zeroshard/kernels"
	"zeroshard/kernels/cpu"
)

// vectorWork is a kernel on n elements that reads and writes bytes a run.
type vectorWork struct {
	name  string
	bytes int
	run   func(k *cpu.Kernels)
}

func vectorWorks(n int) []vectorWork {
	x, y, m, v := floats(n), floats(n), floats(n), device.Host(make([]float32, n))
	half := device.Buffer{Mem: device.Host(make([]float32, (n+1)/2)).Mem, Len: n, DType: device.BF16}
	control := device.Host([]float32{1, 0})
	acc := device.Host(make([]uint64, exact.Words))
	adamw := kernels.AdamW{P: x, G: y, M: m, V: v, Control: control, LR: 1e-4, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, Decay: 0.1, C1: 0.1, C2: 0.05}
	sgd := kernels.SGD{P: x, G: y, M: m, Control: control, LR: 1e-4, Momentum: 0.9, Decay: 0.1}
	return []vectorWork{
		{"Zero", 4 * n, func(k *cpu.Kernels) { k.Zero(nil, y) }},
		{"Add", 12 * n, func(k *cpu.Kernels) { k.Add(nil, x, x, y) }},
		{"AdamW", 28 * n, func(k *cpu.Kernels) { k.AdamW(nil, adamw) }},
		{"SGD", 20 * n, func(k *cpu.Kernels) { k.SGD(nil, sgd) }},
		{"SumSquares", 4 * n, func(k *cpu.Kernels) { k.SumSquares(nil, acc, x, 1) }},
		{"CastToBF16", 6 * n, func(k *cpu.Kernels) { k.Cast(nil, half, x) }},
		{"CastFromBF16", 6 * n, func(k *cpu.Kernels) { k.Cast(nil, x, half) }},
		{"GELU", 8 * n, func(k *cpu.Kernels) { k.GELU(nil, y, x) }},
		{"GELUBackward", 12 * n, func(k *cpu.Kernels) { k.GELUBackward(nil, m, device.Buffer{}, y, x) }},
	}
}

// BenchmarkVector runs in the second-level cache and in memory.
func BenchmarkVector(b *testing.B) {
	k := cpu.New(nil)
	for _, n := range []int{16 << 10, 8 << 20} {
		for _, w := range vectorWorks(n) {
			b.Run(fmt.Sprintf("%s/%s/%d", k.Path(), w.name, n), func(b *testing.B) {
				b.ReportAllocs()
				b.SetBytes(int64(w.bytes))
				for b.Loop() {
					w.run(k)
				}
			})
		}
	}
}

func BenchmarkAttention(b *testing.B) {
	for _, threads := range []int{1, 2} {
		pool := devcpu.NewPool(threads)
		defer pool.Close()
		k := cpu.New(pool)
		for _, seq := range []int{256, 1024} {
			n := seq * 768
			a := kernels.Attention{Out: floats(n), QKV: floats(3 * n), LSE: floats(12 * seq), Batch: 1, Seq: seq, Heads: 12, Dim: 64}
			g := kernels.AttentionBackward{DQKV: floats(3 * n), DOut: floats(n), Attention: a}
			pairs := float64(seq) * float64(seq) * 768 // operations of one product under the diagonal
			for _, w := range []struct {
				name  string
				flops float64
				run   func()
			}{
				{"forward", 2 * pairs, func() { k.Attention(nil, a) }},
				{"backward", 5 * pairs, func() { k.AttentionBackward(nil, g) }},
			} {
				b.Run(fmt.Sprintf("%s/%s/T=%d/threads=%d", k.Path(), w.name, seq, threads), func(b *testing.B) {
					b.ReportAllocs()
					for b.Loop() {
						w.run()
					}
					b.ReportMetric(w.flops*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GFLOP/s")
				})
			}
		}
	}
}

func BenchmarkRows(b *testing.B) {
	const rows, width, vocab, tokens = 1024, 768, 50304, 64
	x, y, g := floats(rows*width), floats(rows*width), floats(rows*width)
	w, dw, db, stats := floats(width), floats(width), floats(width), floats(2*rows)
	logits, targets, loss := floats(tokens*vocab), device.Host(make([]int32, tokens)), device.Host(make([]float64, 2))
	k := cpu.New(nil)
	for _, c := range []struct {
		name  string
		bytes int
		run   func()
	}{
		{"LayerNorm", 8 * rows * width, func() {
			k.LayerNorm(nil, kernels.LayerNorm{Y: y, X: x, W: w, B: w, Stats: stats, Rows: rows, Dim: width, Eps: 1e-5})
		}},
		{"LayerNormBackward", 12 * rows * width, func() {
			k.LayerNormBackward(nil, kernels.LayerNormBackward{DX: g, DW: dw, DB: db, DY: y, X: x, W: w, Stats: stats, Rows: rows, Dim: width})
		}},
		{"BiasGrad", 4 * rows * width, func() { k.BiasGrad(nil, db, y, rows, width, false) }},
		{"CrossEntropy", 8 * tokens * vocab, func() {
			k.CrossEntropy(nil, kernels.CrossEntropy{Logits: logits, Targets: targets, Loss: loss, Rows: tokens, Vocab: vocab, Grad: true})
		}},
	} {
		b.Run(k.Path()+"/"+c.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(c.bytes))
			for b.Loop() {
				c.run()
			}
		})
	}
}
