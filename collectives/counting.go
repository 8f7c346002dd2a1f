package collectives

import (
	"context"
	"sync/atomic"

	"zeroshard/device"
)

// Counter is a group that counts what this rank sends.
type Counter struct {
	Group
	sent  [2]atomic.Int64
	calls [2]atomic.Int64
}

// Counting wraps g. Counts may be read at any time.
func Counting(g Group) *Counter { return &Counter{Group: g} }

// AllGather counts the piece once for each peer: (Size−1)·n elements.
func (c *Counter) AllGather(ctx context.Context, s device.Stream, dst, src device.Buffer) error {
	err := c.Group.AllGather(ctx, s, dst, src)
	if err == nil {
		c.count(AllGather, int64(c.Size()-1)*src.Bytes())
	}
	return err
}

// ReduceScatter counts the slices of all peers: (Size−1)·n elements where this rank has a part, else nothing.
func (c *Counter) ReduceScatter(ctx context.Context, s device.Stream, r Reduction) error {
	err := c.Group.ReduceScatter(ctx, s, r)
	if err == nil {
		c.count(ReduceScatter, r.Src.Bytes()/int64(c.Size())*int64(c.Size()-1))
	}
	return err
}

func (c *Counter) count(v Verb, bytes int64) {
	c.sent[v].Add(bytes)
	c.calls[v].Add(1)
}

// Sent is the bytes sent by verb in calls that succeeded. Bytes that pass a peer's hands on the way count as the peer's.
func (c *Counter) Sent() [2]int64 { return [2]int64{c.sent[0].Load(), c.sent[1].Load()} }

// Calls is the number of calls that succeeded, by verb.
func (c *Counter) Calls() [2]int64 { return [2]int64{c.calls[0].Load(), c.calls[1].Load()} }

// Reset sets all counts to zero.
func (c *Counter) Reset() {
	for v := range c.sent {
		c.sent[v].Store(0)
		c.calls[v].Store(0)
	}
}
