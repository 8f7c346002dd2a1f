package zero

import (
	"zeroshard/models"
	"zeroshard/shard"
)

// Estimate is about what Compile would find, by formula and without a plan: to put settings in order before they are compiled.
// ModelState is exact; Peak is a lower bound (model state, and the activations that live when the loss is computed); FLOPs and bytes moved
// are the paper's: 2Ψ, (A+1)Ψ or 3AΨ on the wire for A leaves a rank, and tiered state fetched and evicted as often as it is used.
func Estimate(l *shard.Layout, m models.Model, s Strategy, mesh shard.Mesh, o Options) (Cost, Traffic) {
	o = o.withDefaults()
	var full, part, device int64 // device: of part, what has its optimizer state there
	offloads := s.offloads(l)
	for f := range l.Flats {
		full += int64(l.FullLen(f, mesh))
		part += int64(l.ShardLen(f, mesh))
		if !offloads[f] {
			device += int64(l.ShardLen(f, mesh))
		}
	}
	value := int64(o.Precision.Compute.Size())
	state := int64(4 * len(o.States))
	if o.Precision.Compute != o.Precision.Master {
		state += int64(o.Precision.Master.Size())
	}
	leaves := int64((o.Leaves + mesh.World() - 1) / mesh.World())

	var c Cost
	rest := func(r Rest, bytes, device, fetched, evicted int64) {
		switch {
		case r.Tier != "":
			t, away := c.tier(r.Tier), part-device
			t.Holds += away * bytes
			t.Fetched += fetched * away * bytes
			t.Evicted += evicted * away * bytes
			c.ModelState += device * bytes
		case r.Over != shard.None:
			c.ModelState += part * bytes
		default:
			c.ModelState += full * bytes
		}
	}
	rest(s.Param, value, 0, 2*leaves+1, 1)
	rest(s.Grad, value, device, leaves+1, leaves)
	rest(s.Optim, state, device, 1, 1)

	sends := int64(2)
	switch {
	case s.Param.Over != shard.None:
		sends = 3 * leaves
	case s.Grad.Over != shard.None:
		sends = leaves + 1
	}
	shards := int64(mesh.Size(shard.Shards))
	wire := Traffic{AllGather: sends * (shards - 1) * (full / shards) * value}
	held := estimateUnits(&c, m.Units(), o)
	c.Flops *= leaves
	c.Resident, c.Transient = c.ModelState, held*value
	return c, wire
}

// estimateUnits adds a leaf's FLOPs and returns the elements of activations that live when the loss is computed.
func estimateUnits(c *Cost, units []models.Unit, o Options) (held int64) {
	for i, u := range units {
		z := u.Sizes(o.Shape, models.Train)
		c.Flops += 3 * z.Flops
		if i == len(units)-1 {
			break
		}
		held += int64(z.Out)
		switch {
		case o.Recompute == 0:
			held += int64(z.Saved)
		case z.Saved > 0:
			c.Flops += z.Flops / int64(o.Recompute)
		}
	}
	return held
}
