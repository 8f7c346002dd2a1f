package zeroshard

import (
	"fmt"

	"zeroshard/zero"
)

// flagsFrom names a setting by the flags that turn base into it, whatever base was; the stage and the ranks are always named.
func flagsFrom(base, c Config) string {
	s := fmt.Sprintf("--stage %d --ranks %d", c.Stage, c.Ranks)
	add := func(changed bool, flag, value string) {
		if changed {
			s += " --" + flag + " " + value
		}
	}
	number := func(flag string, from, to int) { add(from != to, flag, fmt.Sprint(to)) }
	number("replicas", base.Replicas, c.Replicas)
	number("micro-batch", base.MicroBatch, c.MicroBatch)
	add(base.Recompute != c.Recompute, "recompute", recomputeFlag(c.Recompute))
	number("prefetch", base.Prefetch, c.Prefetch)
	number("window", base.Window, c.Window)
	from, to := base.Offload, c.Offload
	add(from.Optimizer != to.Optimizer, "offload-optimizer", tierFlag(to.Optimizer))
	add(from.Param != to.Param, "offload-param", tierFlag(to.Param))
	add(from.part() != to.part(), "offload-ratio", fmt.Sprint(to.part()))
	add(to.uses(zero.FileTier) && !from.uses(zero.FileTier), "offload-path", "DIR")
	return s
}

func recomputeFlag(n int) string {
	switch n {
	case 0:
		return "none"
	case 1:
		return "all"
	}
	return fmt.Sprint(n)
}

func tierFlag(tier string) string {
	if tier == "" {
		return "none"
	}
	return tier
}

// part is Ratio with its default.
func (o Offload) part() float64 {
	if o.Ratio == 0 {
		return 1
	}
	return o.Ratio
}
