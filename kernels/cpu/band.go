package cpu

import "math"

// band limits the links of a product's rows, as the diagonal of attention does: row i takes those of [0,k) in [i+lo, i+hi).
type band struct{ lo, hi int }

// never is a limit that no row reaches.
const never = math.MaxInt >> 2

func (w band) of(i, k int) (from, to int) {
	from = min(max(i+w.lo, 0), k)
	return from, max(min(i+w.hi, k), from)
}

// parts cuts a product of m rows and k links into full ones, to be added to C in the order given: part gets the first row, the
// number of rows, and the links. For each group of rows first come the links before those that all of its rows have, row
// by row, then the common ones, then those after.
func (w band) parts(m, k, rows int, part func(i, m, from, to int)) {
	for i := 0; i < m; i += rows {
		end := min(i+rows, m)
		lo, _ := w.of(end-1, k)
		_, hi := w.of(i, k)
		hi = max(lo, hi)
		for r := i; r < end; r++ {
			from, to := w.of(r, k)
			part(r, 1, from, min(to, lo))
		}
		part(i, end-i, lo, hi)
		for r := i; r < end; r++ {
			from, to := w.of(r, k)
			part(r, 1, max(from, hi), to)
		}
	}
}
