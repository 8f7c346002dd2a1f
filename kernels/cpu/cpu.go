package cpu

import (
	"fmt"
	"unsafe"

	"zeroshard/device"
	"zeroshard/kernels"
)

// Kernels is kernels.Vector and kernels.Net for one stream.
type Kernels struct {
	pool    kernels.Pool
	path    *path
	threads []thread // scratch, by part of a job
	jobs    jobs
	next    nextJob // a job too
}

var (
	_ kernels.Vector = (*Kernels)(nil)
	_ kernels.Net    = (*Kernels)(nil)
)

// New returns kernels that run on pool (on one thread where pool is nil), by the best of Paths.
func New(pool kernels.Pool) *Kernels { return newKernels(pool, paths()[0]) }

// NewPath is New with one of Paths. Paths differ in the bits of products: "portable" rounds product and sum, the others
// once.
func NewPath(pool kernels.Pool, name string) (*Kernels, error) {
	for _, p := range paths() {
		if p.name == name {
			return newKernels(pool, p), nil
		}
	}
	return nil, fmt.Errorf("%w: %q; this machine has %v", ErrPath, name, Paths())
}

func newKernels(pool kernels.Pool, p *path) *Kernels {
	if pool == nil {
		pool = single{}
	}
	k := &Kernels{pool: pool, path: p, threads: make([]thread, pool.Threads())}
	k.jobs.tie(k)
	k.next.k = k
	return k
}

// Path names the instruction set in use.
func (k *Kernels) Path() string { return k.path.name }

// single is the pool of one thread.
type single struct{}

func (single) Threads() int { return 1 }

func (single) Run(parts int, t kernels.Task) {
	for i := range parts {
		t.Part(i)
	}
}

// thread is the scratch of one part of a job; parts of jobs that use it are as many as threads.
type thread struct {
	pack   []float32    // of a product
	pieces []float32    // of attention's products: the first part of pack
	scores [2][]float32 // tiles of attention, queryBlock × tileStride: the last part of pack
	keep   keepBuf      // what dropout multiplies by
	grains grains

	highest, sum [spanBlock]float32 // of each query's scores
}

const (
	packFloats  = 291 << 9 // enough for the hungriest path, and the same on every machine, so that plans are
	tileFloats  = queryBlock * tileStride
	threadBytes = 4 * packFloats
)

// Scratch is threadBytes for each thread.
func (k *Kernels) Scratch() int64 { return int64(len(k.threads)) * threadBytes }

// UseScratch gives the kernels their scratch, of Scratch bytes. Without it they take it from the Go heap at the first call
// that needs it.
func (k *Kernels) UseScratch(m device.Mem) error {
	h, ok := m.(device.HostMem)
	if !ok || m.Size() < k.Scratch() {
		return fmt.Errorf("cpu: scratch must be host memory of at least %d bytes, have %T of %d: %w", k.Scratch(), m, m.Size(), device.ErrMemory)
	}
	b := h.Bytes()
	k.carve(unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4))
	return nil
}

func (k *Kernels) carve(f []float32) {
	for i := range k.threads {
		t, pack := &k.threads[i], f[i*packFloats:(i+1)*packFloats]
		pieces, rest := pack[:packFloats-2*tileFloats], pack[packFloats-2*tileFloats:]
		t.pack, t.pieces, t.scores = pack, pieces, [2][]float32{rest[:tileFloats], rest[tileFloats:]}
	}
}

// needScratch is called at the start of kernels that use packs or tiles.
func (k *Kernels) needScratch() {
	if k.threads[0].pack == nil {
		k.carve(make([]float32, k.Scratch()/4))
	}
}

// chunk is the number of elements of one part of element-wise work. One assembly loop of this length cannot be interrupted:
// it takes some ten microseconds.
const chunk = 64 << 10

// chunks is the number of parts of n elements; part i is cut(i, n).
func chunks(n int) int { return (n + chunk - 1) / chunk }

func cut(i, n int) (lo, hi int) { return i * chunk, min(i*chunk+chunk, n) }

// run is pool.Run, but one part runs here.
func (k *Kernels) run(parts int, t kernels.Task) {
	if parts == 1 {
		t.Part(0)
	} else if parts > 1 {
		k.pool.Run(parts, t)
	}
}

// share is part i of n things dealt to parts evenly, in multiples of unit.
func share(i, parts, n, unit int) (lo, hi int) {
	units := (n + unit - 1) / unit
	return min(units*i/parts*unit, n), min(units*(i+1)/parts*unit, n)
}
