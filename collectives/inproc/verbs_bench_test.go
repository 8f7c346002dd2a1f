package inproc_test

import (
	"context"
	"fmt"
	"testing"

	"zeroshard/collectives"
	"zeroshard/collectives/inproc"
	"zeroshard/device"
	kcpu "zeroshard/kernels/cpu"
)

// benchVerb runs one call a rank and a turn, two ranks, with full buffers of 1 MiB to 64 MiB. MB/s count what a rank gets from its peer
// (busbw of nccl-tests).
func benchVerb(b *testing.B, call func(g collectives.Group, full device.Buffer) error) {
	for _, size := range []int{1 << 20, 16 << 20, 64 << 20} {
		b.Run(fmt.Sprintf("%dMiB", size>>20), func(b *testing.B) {
			groups, err := inproc.New(2, func(int) collectives.Folder { return kcpu.New(nil) })
			if err != nil {
				b.Fatal(err)
			}
			full := []device.Buffer{device.Host(make([]float32, size/4)), device.Host(make([]float32, size/4))}
			b.ReportAllocs()
			b.SetBytes(int64(size / 2))
			b.ResetTimer()
			ranks(b, groups, func(g collectives.Group) error {
				for range b.N {
					if err := call(g, full[g.Rank()]); err != nil {
						return err
					}
				}
				return nil
			})
		})
	}
}

func BenchmarkAllGather(b *testing.B) {
	benchVerb(b, func(g collectives.Group, full device.Buffer) error {
		n := full.Len / 2
		return g.AllGather(context.Background(), nil, full, full.Slice(g.Rank()*n, (g.Rank()+1)*n))
	})
}

func BenchmarkReduceScatter(b *testing.B) {
	fold, err := collectives.NewFold(2, 2, 1, 0)
	if err != nil {
		b.Fatal(err)
	}
	benchVerb(b, func(g collectives.Group, full device.Buffer) error {
		n := full.Len / 2
		own := full.Slice(g.Rank()*n, (g.Rank()+1)*n)
		return g.ReduceScatter(context.Background(), nil, collectives.Reduction{Out: []device.Buffer{own}, Src: full, Fold: fold})
	})
}
