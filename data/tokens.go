package data

import "sort"

// Memory is tokens held in memory.
type Memory []int32

// Len is the number of tokens.
func (m Memory) Len() int { return len(m) }

// Read copies tokens at, at+1, … to dst.
func (m Memory) Read(at int, dst []int32) error {
	if at < 0 || at > len(m)-len(dst) {
		return outside(at, len(dst), len(m))
	}
	copy(dst, m[at:])
	return nil
}

// Part is tokens [lo, hi) of t.
func Part(t Tokens, lo, hi int) Tokens { return &part{t, lo, hi - lo} }

type part struct {
	of    Tokens
	lo, n int
}

func (p *part) Len() int { return p.n }

func (p *part) Read(at int, dst []int32) error {
	if at < 0 || at > p.n-len(dst) {
		return outside(at, len(dst), p.n)
	}
	return p.of.Read(p.lo+at, dst)
}

// Join is the tokens of all ts, one after the other. A window may cross from one to the next.
func Join(ts ...Tokens) Tokens {
	if len(ts) == 1 {
		return ts[0]
	}
	j := &joined{of: ts, ends: make([]int, len(ts))}
	n := 0
	for i, t := range ts {
		n += t.Len()
		j.ends[i] = n
	}
	return j
}

type joined struct {
	of   []Tokens
	ends []int // sum of lengths up to and with each
}

func (j *joined) Len() int {
	if len(j.ends) == 0 {
		return 0
	}
	return j.ends[len(j.ends)-1]
}

func (j *joined) Read(at int, dst []int32) error {
	if at < 0 || at > j.Len()-len(dst) {
		return outside(at, len(dst), j.Len())
	}
	for i := sort.SearchInts(j.ends, at+1); len(dst) > 0; i++ {
		n := min(len(dst), j.ends[i]-at)
		if err := j.of[i].Read(at-j.ends[i]+j.of[i].Len(), dst[:n]); err != nil {
			return err
		}
		at, dst = at+n, dst[n:]
	}
	return nil
}
