package zeroshard

import (
	"context"
	"fmt"

	"zeroshard/zero"
)

// Load gives all parameters new values. read fills dst with elements [lo, lo+len(dst)) of a parameter, row by row; it is called from several
// goroutines at once, in parts, and by each rank only for what rests on it. An error of read ends the cluster: other ranks have new values
// then. It is collective.
func (c *Cluster) Load(ctx context.Context, read func(name string, lo int, dst []float32) error) error {
	if err := c.ready(ctx, "Load", false); err != nil {
		return err
	}
	return c.each(func(_ int, rk *rank) error {
		for _, name := range c.Params() {
			if ctx.Err() != nil {
				return rk.engine.Fail(fmt.Errorf("zeroshard: Load: %w", context.Cause(ctx)))
			}
			err := rk.engine.Write(name, zero.Master, func(lo int, dst []float32) error { return read(name, lo, dst) })
			if err != nil {
				return rk.engine.Fail(fmt.Errorf("zeroshard: Load of %q: %w", name, err))
			}
		}
		return nil
	})
}
