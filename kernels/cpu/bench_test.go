package cpu_test

import (
	"fmt"
	"testing"

	"zeroshard/device"
	devcpu "zeroshard/device/cpu"
	"zeroshard/kernels"
	"zeroshard/kernels/cpu"
)

func floats(n int) kernels.Buffer {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(i%251)/251 - 0.5
	}
	return device.Host(x)
}

func BenchmarkMatMul(b *testing.B) {
	shapes := [][3]int{{256, 512, 128}, {256, 2304, 768}, {1024, 3072, 768}, {1024, 768, 3072}}
	for _, threads := range []int{1, 2} {
		pool := devcpu.NewPool(threads)
		defer pool.Close()
		k := cpu.New(pool)
		for _, s := range shapes {
			for _, op := range []string{"NN", "NT", "TN"} {
				m := kernels.MatMul{C: floats(s[0] * s[1]), A: floats(s[0] * s[2]), B: floats(s[1] * s[2]), M: s[0], N: s[1], K: s[2],
					TransA: op == "TN", TransB: op == "NT"}
				b.Run(fmt.Sprintf("%s/%s/%dx%dx%d/threads=%d", k.Path(), op, s[0], s[1], s[2], threads), func(b *testing.B) {
					for b.Loop() {
						k.MatMul(nil, m)
					}
					b.ReportMetric(2*float64(s[0]*s[1]*s[2])*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GFLOP/s")
				})
			}
		}
	}
}
