package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"zeroshard/bench"
	"zeroshard/collectives"
	"zeroshard/collectives/inproc"
	"zeroshard/device"
	devices "zeroshard/device/cpu"
	"zeroshard/kernels"
	arithmetic "zeroshard/kernels/cpu"
)

// subjects are what bench measures.
var subjects = [...]struct {
	name, short string
	run         func(context.Context, bench.Backend, bench.Options, bench.Emit) error
}{
	{"kernels", "products, attention, norms, optimizer, casts, against the peak or x += y", func(_ context.Context, b bench.Backend, o bench.Options, e bench.Emit) error {
		return bench.Kernels(b, o, e)
	}},
	{"collectives", "all-gather and reduce-scatter in process, against a copy", bench.Collectives},
	{"step", "training steps of tiny, small and gpt2 (some minutes), against the peak", bench.Step},
}

func newBench() *cobra.Command {
	c := &cobra.Command{
		Use:   "bench",
		Short: "Measure what is reached of the machine's limit",
		Long: "bench measures what is reached of what this machine can do: multiply-adds and memory traffic are measured in the same run, in turn\n" +
			"with what is judged by them. Figures are medians. They mean little while the machine does something else.",
		Args: noCommand,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	for _, s := range subjects {
		c.AddCommand(newSubject(s.name, s.short, s.run))
	}
	return c
}

func newSubject(name, short string, run func(context.Context, bench.Backend, bench.Options, bench.Emit) error) *cobra.Command {
	var o bench.Options
	var filter string
	var asJSON bool
	c := &cobra.Command{
		Use:   name,
		Short: "Measure " + short,
		Long:  "bench " + name + " measures " + short + ".",
		Args:  noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := judgeBench(&o, filter); err != nil {
				return err
			}
			out := c.OutOrStdout()
			emit := printRow(out)
			if asJSON {
				emit = printRowJSON(out)
			}
			return run(context.Background(), localBackend(), o, emit)
		},
	}
	f := c.Flags()
	f.SortFlags = false
	c.SetHelpFunc(flagHelp)
	f.BoolVar(&asJSON, "json", false, "print a JSON object for each row, one on a line")
	f.IntVar(&o.Threads, "threads", 0, "threads (`N`) of all ranks together; 0: one, and as many as there are cores (collectives: 2)")
	f.StringVar(&filter, "filter", "", "only rows whose name and shape, with a space between, match this regular expression (`RE`)")
	f.DurationVar(&o.Time, "time", bench.DefaultTime, "time (`D`) for a row; none takes fewer than three rounds")
	return c
}

func judgeBench(o *bench.Options, filter string) error {
	var f faults
	f.check(o.Threads >= 0, "--threads %d: use 1 or more, or 0 for the default", o.Threads)
	f.check(o.Time > 0, "--time %v: use more than 0, such as 300ms", o.Time)
	if filter != "" {
		re, err := regexp.Compile(filter)
		f.check(err == nil, "--filter %q is no regular expression: %v", filter, err)
		o.Filter = re
	}
	return f.err()
}

// localBackend is what train runs on.
func localBackend() bench.Backend {
	return bench.Backend{
		Device:  func() device.Device { return devices.New(devices.Options{Name: "bench"}) },
		Pool:    func(threads int) bench.Pool { return devices.NewPool(threads) },
		Kernels: func(p kernels.Pool) kernels.Backend { return arithmetic.New(p) },
		Groups: func(ranks int) ([]collectives.Group, error) {
			return inproc.New(ranks, func(int) collectives.Folder { return arithmetic.New(nil) })
		},
	}
}

// printRow prints rows as they come, so columns are as wide as rows need as a rule.
func printRow(w io.Writer) bench.Emit {
	header := false
	return func(r bench.Row) {
		if !header {
			header = true
			fmt.Fprintf(w, "%-28s %-40s %7s %11s %11s %9s  %s\n", "name", "shape", "threads", "value", "limit", "of limit", "unit")
		}
		fmt.Fprintf(w, "%-28s %-40s %7d %11s %11s %8.1f%%  %s\n", r.Name, r.Shape, r.Threads, figure(r.Value), figure(r.Limit), 100*r.OfLimit, r.Unit)
	}
}

// figure has four digits where that says it all.
func figure(v float64) string {
	if v >= 1e4 {
		return fmt.Sprintf("%.0f", v)
	}
	return strings.TrimSuffix(fmt.Sprintf("%#.4g", v), ".")
}

func printRowJSON(w io.Writer) bench.Emit {
	enc := json.NewEncoder(w)
	return func(r bench.Row) { _ = enc.Encode(r) } // a reader that left is no reason to stop measuring
}
