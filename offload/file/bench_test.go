package file_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"zeroshard/device"
	"zeroshard/internal/pages"
	"zeroshard/offload"
	"zeroshard/offload/file"
)

// BenchmarkTier compares a tier with a plain loop of direct reads and writes of a block each, over the same pieces of the same size, taking
// turns so that both meet the same disk. %ofplain is the tier's speed by the loop's; the tier checks what it reads, the loop does not.
func BenchmarkTier(b *testing.B) {
	for _, piece := range []int{256 << 20, 7<<20 + 3*4096, 1 << 20} {
		for _, put := range []bool{true, false} {
			b.Run(fmt.Sprintf("put=%t/piece=%dKiB", put, piece>>10), func(b *testing.B) { compare(b, piece, put) })
		}
	}
}

const benchBytes, benchBlock = 256 << 20, 1 << 20

// compare moves benchBytes in pieces, by the loop and by a tier in turn.
func compare(b *testing.B, piece int, put bool) {
	dir, n := b.TempDir(), benchBytes/piece
	mem, err := pages.Map(int64(piece))
	if err != nil {
		b.Fatal(err)
	}
	defer pages.Unmap(mem)
	copy(mem, pattern(piece, 1))
	plain, err := file.OpenDisk(filepath.Join(dir, "plain"), file.Auto)
	if err == nil {
		defer plain.Close()
		err = plain.Reserve(int64(n * piece))
	}
	if err != nil {
		b.Fatal(err)
	}
	x := file.New(file.Options{Dir: dir})
	defer x.Close()
	keys, extents := make([]offload.Key, n), make([]offload.Extent, n)
	for i := range n {
		keys[i] = offload.Key{Flat: fmt.Sprint("h.", i), State: "m"}
		extents[i] = offload.Extent{Key: keys[i], Bytes: int64(piece)}
	}
	if err := x.Reserve(context.Background(), extents); err != nil {
		b.Fatal(err)
	}
	run := func(put bool) (took [2]time.Duration) {
		start := time.Now()
		for i := range n {
			if err := plainPiece(plain, mem[:piece], int64(i*piece), put); err != nil {
				b.Fatal(err)
			}
		}
		took[0] = time.Since(start)
		start = time.Now()
		for _, k := range keys {
			if err := tierPiece(x, k, buffer(mem[:piece]), put); err != nil {
				b.Fatal(err)
			}
		}
		took[1] = time.Since(start)
		return took
	}
	run(true) // what was never written is not read, and costs more to write
	b.SetBytes(2 * int64(n*piece))
	var sum [2]float64
	for b.Loop() {
		took := run(put)
		sum[0] += took[0].Seconds()
		sum[1] += took[1].Seconds()
	}
	megabytes := float64(n*piece) * float64(b.N) / 1e6
	b.ReportMetric(megabytes/sum[0], "plainMB/s")
	b.ReportMetric(megabytes/sum[1], "tierMB/s")
	b.ReportMetric(100*sum[0]/sum[1], "%ofplain")
}

func plainPiece(d file.Disk, mem []byte, off int64, put bool) error {
	for i := 0; i < len(mem); i += benchBlock {
		call := d.ReadAt
		if put {
			call = d.WriteAt
		}
		if _, err := call(mem[i:min(i+benchBlock, len(mem))], off+int64(i)); err != nil {
			return err
		}
	}
	return nil
}

func tierPiece(x offload.Tier, k offload.Key, b device.Buffer, put bool) error {
	if put {
		return x.Put(context.Background(), nil, k, 0, b)
	}
	return x.Get(context.Background(), nil, k, 0, b)
}
