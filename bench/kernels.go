package bench

import (
	"errors"
	"fmt"
	"slices"

	"zeroshard/bench/internal/limit"
	"zeroshard/kernels"
)

// measurement is a row to be.
type measurement struct {
	name, shape string
	amount      float64 // of one run: operations, or bytes read and written
	traffic     int     // bytes of all operands where traffic is what counts, else 0
	// prepare makes the operands. What it returns is timed.
	prepare func(*arena, kernels.Backend) (work, error)
}

// Kernels measures every kernel that a training step spends time in, and the machine's peak.
func Kernels(b Backend, o Options, emit Emit) error {
	for _, threads := range o.threads() {
		if err := kernelsOn(b, o, threads, emit); err != nil {
			return err
		}
	}
	return nil
}

func kernelsOn(b Backend, o Options, threads int, emit Emit) error {
	pool := b.Pool(threads)
	defer pool.Close()
	k := b.Kernels(pool)
	if err := peaks(b, o, pool, emit); err != nil {
		return err
	}
	products, err := o.all(b, pool, k, products(), emit)
	if err != nil {
		return err
	}
	if mean, ok := geomean(products); ok {
		emit(mean)
	}
	_, err = o.all(b, pool, k, append(attentions(), vectors()...), emit)
	return err
}

// all measures those that are wanted.
func (o Options) all(b Backend, pool Pool, k kernels.Backend, ms []measurement, emit Emit) (rows []Row, err error) {
	for _, m := range ms {
		if !o.wants(m.name, m.shape) {
			continue
		}
		row, err := m.measure(b, o, pool, k)
		if err != nil {
			return nil, fmt.Errorf("bench: %s %s: %w", m.name, m.shape, err)
		}
		emit(row)
		rows = append(rows, row)
	}
	return rows, nil
}

func (m *measurement) measure(b Backend, o Options, pool Pool, k kernels.Backend) (row Row, err error) {
	a := &arena{dev: b.Device()}
	defer func() { err = errors.Join(err, a.close()) }()
	run, err := m.prepare(a, k)
	if err != nil {
		return row, err
	}
	row = Row{Name: m.name, Shape: m.shape, Threads: pool.Threads(), Unit: "GFLOP/s"}
	against, amount := fmaLoop(pool)
	if m.traffic > 0 {
		row.Unit = "GB/s"
		if against, amount, err = addLoop(a, pool, m.traffic); err != nil {
			return row, err
		}
	}
	t, err := contest(o.Time, run, against)
	if err != nil {
		return row, err
	}
	row.Value, row.Limit = m.amount/t[0]/1e9, amount/t[1]/1e9
	return row.held(), nil
}

// big is the bytes of operands that no cache holds.
const big = 256 << 20

// peaks reports the limits by themselves.
func peaks(b Backend, o Options, pool Pool, emit Emit) (err error) {
	a := &arena{dev: b.Device()}
	defer func() { err = errors.Join(err, a.close()) }()
	size := fmt.Sprintf("%d MiB", big>>20)
	row := Row{Name: "fma peak", Shape: limit.Name(), Threads: pool.Threads(), Unit: "GFLOP/s"}
	if o.wants(row.Name, row.Shape) {
		run, flops := fmaLoop(pool)
		if err := alone(o, row, run, flops, emit); err != nil {
			return err
		}
	}
	row = Row{Name: "x += y", Shape: size, Threads: pool.Threads(), Unit: "GB/s"}
	if o.wants(row.Name, row.Shape) {
		run, moved, err := addLoop(a, pool, big)
		if err != nil {
			return err
		}
		if err := alone(o, row, run, moved, emit); err != nil {
			return err
		}
	}
	row = Row{Name: "read", Shape: size, Threads: pool.Threads(), Unit: "GB/s"}
	if o.wants(row.Name, row.Shape) {
		run, moved, err := readLoop(a, pool, big)
		if err != nil {
			return err
		}
		if err := alone(o, row, run, moved, emit); err != nil {
			return err
		}
	}
	if !o.wants("copy", size) {
		return nil
	}
	return copies(a, o, pool, emit)
}

// alone measures what is its own limit.
func alone(o Options, row Row, run work, amount float64, emit Emit) error {
	t, err := contest(o.Time, run)
	if err != nil {
		return err
	}
	row.Value = amount / t[0] / 1e9
	row.Limit = row.Value
	emit(row.held())
	return nil
}

// copies reports each way to copy, against the fastest.
func copies(a *arena, o Options, pool Pool, emit Emit) error {
	runs, moved, err := copyLoops(a, pool, big/2)
	if err != nil {
		return err
	}
	t, err := contest(o.Time, runs...)
	if err != nil {
		return err
	}
	for i, c := range limit.Copiers() {
		emit(Row{Name: "copy", Shape: fmt.Sprintf("%d MiB, %s", big>>20, c.Name), Threads: pool.Threads(), Value: moved / t[i] / 1e9, Unit: "GB/s",
			Limit: moved / slices.Min(t) / 1e9}.held())
	}
	return nil
}
