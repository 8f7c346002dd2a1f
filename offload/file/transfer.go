package file

import (
	"context"
	"sync"
	"sync/atomic"
)

// transfer is one Put or Get. Its blocks are claimed one by one, by the caller and by helpers that end with the call; each block takes
// a permit of the tier, so that reads and writes of all calls together stay within Concurrency, and calls that run at once take turns.
//
// A permit is also the right to a staging buffer: there are as many of these.
type transfer struct {
	tier *Tier
	ctx  context.Context
	s    *slice
	put  bool
	off  int64 // in the slice, of data
	data []byte

	next    atomic.Int64 // block to claim
	end     int64        // the first block behind data
	helpers sync.WaitGroup

	mu  sync.Mutex
	err error // the first one
}

// run moves data, with helpers where there is more than one block.
func (x *transfer) run() error {
	size := x.tier.opts.BlockBytes
	first := x.off / size
	x.end = (x.off + int64(len(x.data)) + size - 1) / size
	x.next.Store(first)
	for range min(x.end-first, int64(x.tier.opts.Concurrency)) - 1 {
		x.helpers.Add(1)
		go x.help()
	}
	x.work()
	x.helpers.Wait()
	if x.err != nil && x.put {
		x.tear(x.next.Load(), x.end) // those that nobody claimed
	}
	return x.err
}

func (x *transfer) help() {
	defer x.helpers.Done()
	x.work()
}

func (x *transfer) work() {
	for {
		i := x.next.Add(1) - 1
		if i >= x.end {
			return
		}
		if !x.block(i) {
			return
		}
	}
}

// block moves what data has of block i, and reports whether to go on.
func (x *transfer) block(i int64) bool {
	if x.failed() {
		x.skip(i)
		return false
	}
	p := x.span(i)
	if err := x.tier.permits.Acquire(x.ctx, 1); err != nil {
		x.fail(x.tier.fault(x.put, x.s, p, err))
		x.skip(i)
		return false
	}
	defer x.tier.permits.Release(1)
	part := x.data[p.off+int64(p.from)-x.off:][:p.to-p.from]
	move := x.tier.get
	if x.put {
		move = x.tier.put
	}
	if err := move(x.s, p, part); err != nil {
		x.fail(err)
		return false
	}
	return true
}

// span is the part of block i that data covers.
func (x *transfer) span(i int64) span {
	size := x.tier.opts.BlockBytes
	lo := i * size
	n := min(size, x.s.bytes-lo)
	from := max(x.off-lo, 0)
	to := min(x.off+int64(len(x.data))-lo, n)
	return span{index: int(i), off: lo, n: int(n), from: int(from), to: int(to)}
}

// skip is for a claimed block that is not moved.
func (x *transfer) skip(i int64) {
	if x.put {
		x.tear(i, i+1)
	}
}

// tear marks blocks [i, end) as lost: a Put that failed may have written some of its blocks, and old and new ones must not mix.
func (x *transfer) tear(i, end int64) {
	for ; i < end; i++ {
		x.s.blocks[i].state = torn
	}
}

func (x *transfer) failed() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.err != nil
}

func (x *transfer) fail(err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.err == nil {
		x.err = err
	}
}
