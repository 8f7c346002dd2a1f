package main

import (
	"fmt"
	"io"

	"zeroshard"
	"zeroshard/memory"
	"zeroshard/train"
	"zeroshard/zero"
)

// fitList is how many settings --fit prints.
const fitList = 8

// printFit lists settings that fit.
func printFit(w io.Writer, cfg zeroshard.Config, limit int64) error {
	found, all, err := zeroshard.Search(cfg, limit, fitList, zeroshard.DefaultRates)
	if err != nil {
		return err
	}
	if len(found) == 0 && !all {
		return fmt.Errorf("%w: none of the settings that were looked at brings a rank under %s; the search was cut off", memory.ErrLimit, memory.FormatBytes(limit))
	}
	if len(found) == 0 {
		return fmt.Errorf("%w: no stage, recompute, micro-batch, offload or number of ranks up to that of the micro-batches brings a rank under %s", memory.ErrLimit, memory.FormatBytes(limit))
	}
	rows := [][]string{{"settings that fit into " + memory.FormatBytes(limit), "device", "host", "disk", "predicted", ""}}
	for _, c := range found {
		bits := ""
		if !c.Bits {
			bits = "Bits: changed"
		}
		rows = append(rows, []string{c.Flags, memory.FormatBytes(c.Cost.Peak()), memory.FormatBytes(c.Cost.Host.Holds), memory.FormatBytes(c.Cost.Disk.Holds),
			fmt.Sprintf("%.4gs", c.Seconds), bits})
	}
	printTable(w, rows)
	if !all {
		fmt.Fprintln(w, "the search was cut off: more settings may fit")
	}
	fmt.Fprintf(w, "predicted at %.0f GFLOP/s, %.0f GB/s between ranks, %.1f GB/s to host memory and %.1f GB/s to files, nothing overlapped: it orders, it does not promise\n",
		zeroshard.DefaultRates.Flops/1e9, zeroshard.DefaultRates.Wire/1e9, zeroshard.DefaultRates.Host/1e9, zeroshard.DefaultRates.Disk/1e9)
	return nil
}

// printStages compares the stages: a rank's bytes by kind at the peak, and what it sends.
func printStages(w io.Writer, cfg zeroshard.Config) error {
	head := []string{"a rank, bytes"}
	if cfg.Offload.Optimizer != "" || cfg.Offload.Param != "" {
		return usagef("--stages compares the stages on the device: leave the offload flags out")
	}
	var costs []zero.Cost
	var wires []zero.Traffic
	for stage := range zero.Stages {
		c := cfg
		c.Stage, c.DeviceMemory = stage, 0
		if stage != cfg.Stage {
			c.Window = 0
		}
		p, err := zeroshard.Plan(c)
		if err != nil {
			return err
		}
		head = append(head, fmt.Sprintf("stage %d", stage))
		costs, wires = append(costs, p.Cost()), append(wires, p.Train.WireMax())
	}
	rows := [][]string{head}
	row := func(name string, value func(i int) int64) {
		cells := []string{name}
		for i := range costs {
			cells = append(cells, train.Thousands(value(i)))
		}
		rows = append(rows, cells)
	}
	row("model state", func(i int) int64 { return costs[i].ModelState })
	row("peak", func(i int) int64 { return costs[i].Peak() })
	all := map[string]int64{}
	for _, c := range costs {
		for kind, n := range c.ByKind() {
			all[kind] = max(all[kind], n)
		}
	}
	for _, kind := range kinds([]train.Memory{{ByKind: all}}) {
		row("  "+kind, func(i int) int64 { return costs[i].ByKind()[kind] })
	}
	row("sends in a step", func(i int) int64 { return wires[i].Sum() })
	printTable(w, rows)
	return nil
}
