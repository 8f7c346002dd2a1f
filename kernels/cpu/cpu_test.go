package cpu_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"zeroshard/device"
	"zeroshard/kernels"
	"zeroshard/kernels/cpu"
	"zeroshard/kernels/kerneltest"
	"zeroshard/kernels/ref"
)

func newPath(t *testing.T, pool kernels.Pool, path string) *cpu.Kernels {
	k, err := cpu.NewPath(pool, path)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// families are the paths that must agree, with the truth that they must equal.
func families(t *testing.T) map[*ref.Kernels]map[string]func(kernels.Pool) kerneltest.Kernels {
	once, twice := ref.NewFused(), ref.New()
	all := map[*ref.Kernels]map[string]func(kernels.Pool) kerneltest.Kernels{once: {}, twice: {}}
	for _, path := range cpu.Paths() {
		want := once
		if path == "portable" {
			want = twice
		}
		all[want][path] = func(p kernels.Pool) kerneltest.Kernels { return newPath(t, p, path) }
	}
	return all
}

func TestConformance(t *testing.T) {
	for want, paths := range families(t) {
		if len(paths) > 0 {
			t.Run(strings.Join(slices.Sorted(maps.Keys(paths)), "+"), func(t *testing.T) { kerneltest.RunAll(t, paths, want) })
		}
	}
}

func TestGradients(t *testing.T) {
	for _, path := range cpu.Paths() {
		t.Run(path, func(t *testing.T) { kerneltest.Gradients(t, newPath(t, nil, path)) })
	}
}

// At random shapes too, paths whose products are fused give the same bits, and so does any number of threads.
func TestPathsAgree(t *testing.T) {
	seed, rounds := uint64(time.Now().UnixNano()), 2
	if testing.Short() {
		rounds = 1
	}
	t.Logf("seed %d", seed)
	for want, paths := range families(t) {
		for _, s := range []uint64{1, seed} {
			kerneltest.Random(t, paths, want, s, rounds)
		}
	}
}

func TestPaths(t *testing.T) {
	paths := cpu.Paths()
	if paths[len(paths)-1] != "portable" {
		t.Errorf("paths are %v, want portable last", paths)
	}
	if got := cpu.New(nil).Path(); got != paths[0] {
		t.Errorf("New runs on %q, want %q", got, paths[0])
	}
	if _, err := cpu.NewPath(nil, "abacus"); !errors.Is(err, cpu.ErrPath) {
		t.Errorf("unknown path: %v", err)
	}
}

type mem []byte

func (m mem) Size() int64   { return int64(len(m)) }
func (m mem) Bytes() []byte { return m }

// dark is memory that the CPU cannot address.
type dark int64

func (d dark) Size() int64 { return int64(d) }

func TestUseScratch(t *testing.T) {
	k := cpu.New(nil)
	if err := k.UseScratch(mem(make([]byte, k.Scratch()-1))); !errors.Is(err, device.ErrMemory) {
		t.Errorf("too small: %v", err)
	}
	if err := k.UseScratch(dark(k.Scratch())); !errors.Is(err, device.ErrMemory) {
		t.Errorf("not host memory: %v", err)
	}
	scratch := mem(make([]byte, k.Scratch()))
	if err := k.UseScratch(scratch); err != nil {
		t.Fatal(err)
	}
	// A product with a transposed B of many rows has to pack: its pack must lie in the memory given.
	m := kernels.MatMul{C: floats(16 * 16), A: floats(16 * 16), B: floats(16 * 16), M: 16, N: 16, K: 16, TransB: true}
	k.MatMul(nil, m)
	if !slices.ContainsFunc(scratch, func(b byte) bool { return b != 0 }) {
		t.Error("the scratch was not used")
	}
}

// A product larger than the blocks of rows and of columns has the bits of its four quarters.
func TestProductsInBlocks(t *testing.T) {
	const links = 300
	for _, path := range cpu.Paths() {
		for _, s := range [][2]int{{1100, 200}, {500, 1700}} {
			t.Run(fmt.Sprintf("%s/%dx%d", path, s[0], s[1]), func(t *testing.T) {
				k, m, n := newPath(t, nil, path), s[0], s[1]
				c, a, b := floats(m*n), floats(m*links), floats(n*links)
				k.MatMul(nil, kernels.MatMul{C: c, A: a, B: b, M: m, N: n, K: links, TransB: true})
				quarter := floats(m / 2 * n / 2)
				for q := range 4 {
					i, j := q/2*m/2, q%2*n/2
					k.MatMul(nil, kernels.MatMul{C: quarter, A: a.Slice(i*links, (i+m/2)*links), B: b.Slice(j*links, (j+n/2)*links),
						M: m / 2, N: n / 2, K: links, TransB: true})
					for r := range m / 2 {
						if got, want := c.Float32s()[(i+r)*n+j:][:n/2], quarter.Float32s()[r*n/2:][:n/2]; !slices.Equal(got, want) {
							t.Fatalf("row %d from column %d on differs", i+r, j)
						}
					}
				}
			})
		}
	}
}

// Results that no cache holds are what small ones are.
func TestLargeResults(t *testing.T) {
	const n = 4<<20 + 33 // more than 8 MiB of 16-bit numbers
	for _, path := range cpu.Paths() {
		k := newPath(t, nil, path)
		x, y, sum := floats(n), floats(n), device.Host(make([]float32, n))
		half, back := device.Buffer{Mem: device.Host(make([]float32, n/2+1)).Mem, Len: n, DType: device.BF16}, device.Host(make([]float32, n))
		k.Add(nil, sum, x, y)
		k.Cast(nil, half, sum)
		k.Cast(nil, back, half)
		k.Add(nil, x, x, y)
		for lo := 0; lo < n; lo += 1000 {
			hi := min(lo+1000, n)
			rough := device.Host(make([]float32, hi-lo))
			k.Cast(nil, half.Slice(lo, hi), x.Slice(lo, hi))
			k.Cast(nil, rough, half.Slice(lo, hi))
			if !slices.Equal(sum.Float32s()[lo:hi], x.Float32s()[lo:hi]) || !slices.Equal(back.Float32s()[lo:hi], rough.Float32s()) {
				t.Fatalf("%s: elements from %d on differ", path, lo)
			}
		}
		for i, v := range sum.Float32s() {
			if want := 2 * y.Float32s()[i]; v != want {
				t.Fatalf("%s: element %d is %v, want %v", path, i, v, want)
			}
		}
	}
}
