package file_test

import (
	"testing"
	"time"

	"zeroshard/internal/pages"
	"zeroshard/offload/file"
)

// BenchmarkTier compares a tier with a plain loop of direct reads and writes of a block each, over the same bytes, taking turns so that both
// meet the same disk. %ofplain is the tier's speed; it checks what it reads, the loop does not.
func BenchmarkTier(b *testing.B) {
	const size = 256 << 20
	for _, c := range []struct {
		name string
		put  bool
	}{{"put", true}, {"get", false}} {
		b.Run(c.name, func(b *testing.B) {
			dir := b.TempDir()
			x := reserved(b, file.Options{Dir: dir}, size)
			plain, err := file.OpenDisk(dir+"/plain", file.Auto)
			if err != nil {
				b.Fatal(err)
			}
			defer plain.Close()
			mem, err := pages.Map(size)
			if err != nil {
				b.Fatal(err)
			}
			defer pages.Unmap(mem)
			copy(mem, pattern(size, 1))
			loop := func() error {
				for off := int64(0); off < size; off += 1 << 20 {
					call := plain.ReadAt
					if c.put {
						call = plain.WriteAt
					}
					if _, err := call(mem[off:off+1<<20], off); err != nil {
						return err
					}
				}
				return nil
			}
			tier := func() error {
				if c.put {
					return put(x, 0, mem)
				}
				return get(x, 0, mem)
			}
			if err := plain.Reserve(size); err != nil {
				b.Fatal(err)
			}
			for off := int64(0); off < size; off += 1 << 20 { // blocks never written are not read
				_, err := plain.WriteAt(mem[off:off+1<<20], off)
				if err != nil {
					b.Fatal(err)
				}
			}
			mustPut(b, x, 0, mem)
			b.SetBytes(2 * size)
			var took [2]time.Duration
			for b.Loop() {
				for i, f := range []func() error{loop, tier} {
					start := time.Now()
					if err := f(); err != nil {
						b.Fatal(err)
					}
					took[i] += time.Since(start)
				}
			}
			mbs := func(d time.Duration) float64 { return float64(size) * float64(b.N) / 1e6 / d.Seconds() }
			b.ReportMetric(mbs(took[0]), "plainMB/s")
			b.ReportMetric(mbs(took[1]), "tierMB/s")
			b.ReportMetric(100*took[0].Seconds()/took[1].Seconds(), "%ofplain")
		})
	}
}
