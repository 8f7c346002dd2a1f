package main

import (
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"zeroshard"
	"zeroshard/memory"
	"zeroshard/report"
	"zeroshard/zero"
)

// tiers is what rests outside device memory.
type tiers struct {
	optimizer, param, path string
	ratio                  float64
}

func (t *tiers) flags(f *pflag.FlagSet) {
	f.StringVar(&t.optimizer, "offload-optimizer", "none", "where optimizer state rests, with gradients from stage 2 on: `none|host|file`. Stages 1 to 3."+unchanged)
	f.StringVar(&t.param, "offload-param", "none", "where parameters rest: `none|host|file`. Stage 3."+unchanged)
	f.Float64Var(&t.ratio, "offload-ratio", 1, "`SHARE` of the elements whose optimizer state and gradients leave the device, above 0 and up to 1. Stage 3."+unchanged)
	f.StringVar(&t.path, "offload-path", "", "folder (`DIR`) of what rests in files, on a fast local disk."+unchanged)
}

func (t *tiers) judge(stage int, f *faults) {
	for _, x := range []struct {
		flag, value string
		least       int
	}{{"offload-optimizer", t.optimizer, 1}, {"offload-param", t.param, 3}} {
		switch x.value {
		case "none":
		case zero.HostTier, zero.FileTier:
			f.check(stage >= x.least, "--%s %s: stage %d does not shard it; use --stage %d or more", x.flag, x.value, stage, x.least)
		default:
			f.check(false, "--%s %q: use none, host or file", x.flag, x.value)
		}
	}
	f.check(t.ratio > 0 && t.ratio <= 1, "--offload-ratio %v: use a share above 0 and up to 1", t.ratio)
	f.check(t.ratio == 1 || t.optimizer != "none", "--offload-ratio %v has no meaning without --offload-optimizer host or file", t.ratio)
	inFiles := t.optimizer == zero.FileTier || t.param == zero.FileTier
	f.check(!inFiles || t.path != "", "what rests in files needs --offload-path DIR")
	f.check(inFiles || t.path == "", "--offload-path %s has no meaning without --offload-optimizer file or --offload-param file", t.path)
}

func (t *tiers) config() zeroshard.Offload {
	tier := func(s string) string {
		if s == "none" {
			return ""
		}
		return s
	}
	return zeroshard.Offload{Optimizer: tier(t.optimizer), Param: tier(t.param), Dir: t.path, Ratio: t.ratio}
}

// describe says what a rank rests where, whether files go around the page cache, and which folders of killed runs were removed.
func (t *tiers) describe(all []zeroshard.RankTier) (lines []string) {
	var recovered []string
	for _, x := range all {
		if x.Files != nil {
			recovered = append(recovered, x.Files.Recovered...)
		}
		if x.Rank > 0 {
			continue
		}
		line := fmt.Sprintf("%s on %s: %s a rank", t.what(x.Name), x.Name, memory.FormatBytes(x.Used))
		if f := x.Files; f != nil {
			line += " in " + t.path + ", " + map[bool]string{true: "direct I/O", false: "through the page cache: this file system takes no direct I/O"}[f.Direct]
		}
		lines = append(lines, line)
	}
	if len(recovered) > 0 {
		lines = append(lines, "removed what killed runs had left: "+strings.Join(recovered, ", "))
	}
	return lines
}

// facts is what rests outside device memory, for the head of a page: nothing where all rests there.
func (t *tiers) facts() []report.Fact {
	var parts []string
	if away(t.optimizer) {
		part := "optimizer state on " + t.optimizer
		if t.ratio > 0 && t.ratio < 1 {
			part += fmt.Sprintf(" (ratio %v)", t.ratio)
		}
		parts = append(parts, part)
	}
	if away(t.param) {
		parts = append(parts, "parameters on "+t.param)
	}
	if parts == nil {
		return nil
	}
	return []report.Fact{{Name: "offload", Value: strings.Join(parts, ", ")}}
}

// away reports whether a tier's flag names a tier. Settings of earlier versions have none.
func away(tier string) bool { return tier != "" && tier != "none" }

// what rests in a tier, in words.
func (t *tiers) what(tier string) string {
	var list []string
	if t.optimizer == tier {
		list = append(list, "optimizer state")
	}
	if t.param == tier {
		list = append(list, "parameters")
	}
	return strings.Join(list, " and ")
}
