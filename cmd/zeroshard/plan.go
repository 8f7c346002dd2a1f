package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"zeroshard"
	"zeroshard/memory"
	"zeroshard/models/gpt"
	"zeroshard/train"
	"zeroshard/zero"
)

// longPlan is how many operations are printed unasked.
const longPlan = 200

func newPlan() *cobra.Command {
	var j job
	var asJSON, ops, stages bool
	var fit size
	c := &cobra.Command{
		Use:   "plan",
		Short: "Print what a step does and needs, without training",
		Long: "plan prints the operations of a training step and what a rank needs for it, without training: any model, any world.\n" +
			"Plans of more than 200 operations are summed up unless --ops is given.",
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			m, cfg, err := j.settings(c.Flags())
			switch {
			case err != nil:
				return err
			case asJSON && (fit > 0 || stages):
				return usagef("--json prints one plan: leave --fit and --stages out")
			case fit > 0:
				return printFit(c.OutOrStdout(), cfg, int64(fit))
			case stages:
				return printStages(c.OutOrStdout(), cfg)
			}
			p, err := zeroshard.Plan(cfg)
			if err == nil {
				err = zeroshard.CheckFit(cfg, p)
			}
			if err != nil {
				return err
			}
			if asJSON {
				return printJSON(c.OutOrStdout(), &j, m, p)
			}
			printPlan(c.OutOrStdout(), m, p, ops || len(p.Train.Ops) <= longPlan)
			return nil
		},
	}
	f := c.Flags()
	f.SortFlags = false
	c.SetHelpFunc(flagHelp)
	j.flags(f)
	f.BoolVar(&asJSON, "json", false, "print the figures as JSON")
	f.BoolVar(&stages, "stages", false, "compare the stages: a rank's bytes by kind, and what it sends")
	f.Var(&fit, "fit", "list the cheapest settings near this one that need at most `BYTES` a rank")
	f.BoolVar(&ops, "ops", false, "print every operation, however many there are")
	return c
}

// settings is the model and the configuration that the flags describe.
func (j *job) settings(set *pflag.FlagSet) (*gpt.Model, zeroshard.Config, error) {
	var f faults
	shape := j.resolve(set, nil, &f)
	if err := f.err(); err != nil {
		return nil, zeroshard.Config{}, err
	}
	m, err := gpt.New(shape)
	if err != nil {
		return nil, zeroshard.Config{}, err
	}
	var l learning // its defaults: a plan asks only which states the optimizer keeps
	l.flags(pflag.NewFlagSet("defaults", pflag.ContinueOnError))
	return m, j.config(m, l.optimizer(j)), nil
}

// figures is what scripts read of a plan. Names and meaning of its fields do not change.
type figures struct {
	Model      string           `json:"model"`
	Params     int              `json:"params"`
	Stage      int              `json:"stage"`
	Ranks      int              `json:"ranks"`
	ModelState int64            `json:"model_state_bytes_per_rank"`
	Peak       int64            `json:"peak_bytes_per_rank"`
	ByKind     map[string]int64 `json:"by_kind"`
	Host       zero.Tier        `json:"host"` // held, fetched and evicted in a step
	Disk       zero.Tier        `json:"disk"`
	Save       saveFigures      `json:"save"`
	Wire       zero.Traffic     `json:"wire_bytes_per_step"` // of the rank that sends most
	Flops      int64            `json:"flops_per_step"`      // of the rank that computes most
	PlanSHA256 string           `json:"plan_sha256"`
}

// saveFigures is what a rank needs for saving its state.
type saveFigures struct {
	Writes int64 `json:"writes"`
	Host   int64 `json:"host_memory"` // while a save is written
}

func savesOf(p *zero.Program) (f saveFigures) {
	f.Writes, f.Host = zeroshard.SaveBytes(p)
	return f
}

func printJSON(w io.Writer, j *job, m *gpt.Model, p *zero.Program) error {
	c := p.Cost()
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(figures{Model: j.model, Params: m.Params(), Stage: j.stage, Ranks: j.ranks, ModelState: c.ModelState, Peak: c.Peak(),
		ByKind: c.ByKind(), Host: c.Host, Disk: c.Disk, Save: savesOf(p), Wire: p.Train.WireMax(), Flops: c.Flops, PlanSHA256: p.SHA256()})
}

func printPlan(w io.Writer, m *gpt.Model, p *zero.Program, ops bool) {
	if ops {
		fmt.Fprint(w, p.Train.Text())
	} else {
		fmt.Fprint(w, p.Train.Header())
	}
	c, wire := p.Cost(), p.Train.WireMax()
	fmt.Fprintf(w, "\nplan %s\n%s parameters, %d operations a step\n\n", p.SHA256(), train.Thousands(int64(m.Params())), len(p.Train.Ops))
	rows := [][]string{{"a rank, bytes", "", ""}}
	row := func(name string, bytes int64) {
		rows = append(rows, []string{name, train.Thousands(bytes), memory.FormatBytes(bytes)})
	}
	row("model state", c.ModelState)
	row("peak", c.Peak())
	by := c.ByKind()
	for _, kind := range kinds([]train.Memory{{ByKind: by}}) {
		row("  "+kind, by[kind])
	}
	for _, t := range []struct {
		name string
		tier zero.Tier
	}{{"host memory", c.Host}, {"disk", c.Disk}} {
		if t.tier != (zero.Tier{}) {
			row(t.name+" holds", t.tier.Holds)
			row("  fetched in a step", t.tier.Fetched)
			row("  evicted in a step", t.tier.Evicted)
		}
	}
	save := savesOf(p)
	row("a save writes", save.Writes)
	row("  in host memory", save.Host)
	row("sends in a step", wire.Sum())
	row("  all-gather", wire.AllGather)
	row("  reduce-scatter", wire.ReduceScatter)
	row("  scalars", wire.Scalars)
	printTable(w, rows)
	fmt.Fprintf(w, "computes %.4g GFLOP in a step\n", float64(c.Flops)/1e9)
}
