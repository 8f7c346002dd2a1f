package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"zeroshard/checkpoint"
	"zeroshard/train"
)

func newInspect() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{Use: "inspect DIR", Short: "Show a step's parameters: shapes, dtypes, norms; and where its run stood", Args: operands("a run's or a step's folder")}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.RunE = func(c *cobra.Command, args []string) error {
		s, err := openSaved(args[0])
		if err != nil {
			return err
		}
		defer s.Close()
		list, err := inspect(s)
		if err != nil {
			return err
		}
		if asJSON {
			text, err := json.MarshalIndent(map[string]any{"step": s.Manifest.Step, "updates": s.Manifest.Updates, "tokens": s.Manifest.Tokens, "world": s.Manifest.World,
				"model": s.Manifest.Model, "settings": s.Manifest.Settings, "data": s.Manifest.Data, "tensors": list}, "", "  ")
			fmt.Fprintf(c.OutOrStdout(), "%s\n", text)
			return err
		}
		printInspection(c.OutOrStdout(), s, list)
		return nil
	}
	return c
}

// inspected is a tensor as inspect shows it.
type inspected struct {
	Name      string       `json:"name"`
	State     string       `json:"state"`
	Shape     []int        `json:"shape"`
	DType     string       `json:"dtype"`
	Norm      train.Number `json:"norm"`
	Min       train.Number `json:"min"`
	Max       train.Number `json:"max"`
	NotFinite int          `json:"not_finite"`
	Note      string       `json:"note,omitempty"`
}

func inspect(s *checkpoint.Saved) (list []inspected, err error) {
	for _, p := range s.Manifest.Params {
		for _, state := range s.Manifest.StatesOf(p) {
			f, err := s.Figures(p.Name, state)
			if err != nil {
				return nil, err
			}
			note := ""
			switch {
			case f.NotFinite > 0:
				note = fmt.Sprintf("%d not finite, the first at %d", f.NotFinite, f.FirstNotFinite)
			case p.Frozen:
				note = "frozen"
			case p.NoDecay:
				note = "no decay"
			}
			list = append(list, inspected{Name: p.Name, State: state, Shape: p.Shape, DType: "F32", Norm: train.Number(f.Norm), Min: train.Number(f.Min), Max: train.Number(f.Max),
				NotFinite: f.NotFinite, Note: note})
		}
	}
	return list, nil
}

func printInspection(w io.Writer, s *checkpoint.Saved, list []inspected) {
	m := s.Manifest
	n := 0
	for _, p := range m.Params {
		n += p.Len()
	}
	fmt.Fprintf(w, "step       %d, %d updates, %s tokens trained on, seed %d\n", m.Step, m.Updates, train.Thousands(m.Tokens), m.Seed)
	fmt.Fprintf(w, "saved by   %d rank(s), %d replica(s), %s, plan %s\n", m.World.Ranks, m.World.Replicas, m.World.Strategy, m.World.Plan)
	if model, err := readModel(m); err == nil {
		fmt.Fprintf(w, "model      %s: %d layers × %d heads × %d, vocabulary %d, %d positions, %s parameters\n", model.Name, model.Layers, model.Heads, model.Width, model.Vocab,
			model.Positions, train.Thousands(int64(n)))
	} else {
		fmt.Fprintf(w, "model      %s parameters\n", train.Thousands(int64(n)))
	}
	fmt.Fprintf(w, "data       %s tokens to train on, %s held out, %s sequences drawn\n\n", train.Thousands(m.Data.Train), train.Thousands(m.Data.Val), train.Thousands(m.Data.Sequences))
	rows := [][]string{{"parameter", "state", "shape", "dtype", "norm", "min", "max", ""}}
	for _, l := range list {
		rows = append(rows, []string{l.Name, l.State, fmt.Sprint(l.Shape), l.DType, fmt.Sprintf("%.6g", float64(l.Norm)), fmt.Sprintf("%.4g", float64(l.Min)), fmt.Sprintf("%.4g", float64(l.Max)), l.Note})
	}
	printTable(w, rows)
}
