package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"zeroshard/checkpoint"
	"zeroshard/memory"
	"zeroshard/train"
)

func newCheckpoint() *cobra.Command {
	c := &cobra.Command{
		Use:   "checkpoint",
		Short: "List, check, compare, thin out and convert saved steps",
		Long: "checkpoint works on what train has saved. Its operand DIR is the folder of a run, which stands for its newest committed step (ls, verify and\n" +
			"prune: for all of them), or the folder of a step.",
		Args: noCommand,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newLs(), newInspect(), newVerify(), newDiff(), newPrune(), newConsolidate(), newExport(), newImport())
	return c
}

// operands refuses another number of them.
func operands(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == len(names) {
			return nil
		}
		return usagef("%s needs %s, it got %d operand(s)", strings.TrimPrefix(c.CommandPath(), "zeroshard "), strings.Join(names, " and "), len(args))
	}
}

// find is checkpoint.Find for people: a run in which nothing is committed is a run all the same, and a folder is known by its real name where
// it was given as a link or as ".".
func find(dir string) (*checkpoint.Store, int, error) {
	if real, err := filepath.EvalSymlinks(dir); err == nil && (real != filepath.Clean(dir) || filepath.Base(real) == "." || filepath.Base(real) == "..") {
		if real, err = filepath.Abs(real); err == nil {
			dir = real
		}
	}
	s, step, err := checkpoint.Find(checkpoint.OS{}, dir)
	if errors.Is(err, checkpoint.ErrNone) {
		if _, at := os.Stat(filepath.Join(dir, train.SettingsFile)); at == nil {
			return checkpoint.NewStore(checkpoint.OS{}, filepath.Join(dir, checkpoint.Folder)), -1, nil
		}
	}
	return s, step, err
}

// openSaved opens what dir names: a step, or the newest of a run.
func openSaved(dir string) (*checkpoint.Saved, error) {
	s, step, err := find(dir)
	if err != nil {
		return nil, err
	}
	if step >= 0 {
		return s.Open(step)
	}
	var saved *checkpoint.Saved
	for range 3 { // beside a run that removes steps, the newest may be gone before it is open
		if step, err = s.Newest(); err != nil {
			return nil, err
		}
		if saved, err = s.Open(step); err == nil || !checkpoint.IsNone(err) {
			break
		}
	}
	return saved, err
}

func newLs() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{Use: "ls DIR", Short: "List the committed steps of a run", Args: operands("a run's folder")}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.RunE = func(c *cobra.Command, args []string) error {
		s, only, err := find(args[0])
		if err != nil {
			return err
		}
		steps, err := s.Steps()
		if err != nil {
			return err
		}
		if only >= 0 {
			steps = []int{only}
		}
		list, bad := listing(s, steps)
		if asJSON {
			text, err := json.MarshalIndent(list, "", "  ")
			fmt.Fprintf(c.OutOrStdout(), "%s\n", text)
			return errors.Join(bad, err)
		}
		if len(list) == 0 && bad == nil {
			fmt.Fprintf(c.ErrOrStderr(), "nothing is committed in %s\n", s.Dir())
		} else if len(list) > 0 {
			rows := [][]string{{"step", "bytes", "files", "tokens", "saved by", "folder"}}
			for _, l := range list {
				rows = append(rows, []string{fmt.Sprint(l.Step), train.Thousands(l.Bytes), fmt.Sprint(l.Files), train.Thousands(l.Tokens),
					fmt.Sprintf("%d rank(s), %s", l.Ranks, l.Strategy), l.Folder})
			}
			printTable(c.OutOrStdout(), rows)
		}
		tellLeftovers(c.ErrOrStderr(), s)
		return bad
	}
	return c
}

// listed is a line of ls.
type listed struct {
	Step     int    `json:"step"`
	Bytes    int64  `json:"bytes"`
	Files    int    `json:"files"`
	Tokens   int64  `json:"tokens"`
	Ranks    int    `json:"ranks"`
	Strategy string `json:"strategy"`
	Folder   string `json:"folder"`
}

// listing reads the manifests; those that cannot be read are errors, and the others are listed all the same.
func listing(s *checkpoint.Store, steps []int) (list []listed, bad error) {
	list = []listed{}
	for _, step := range steps {
		m, err := checkpoint.ReadManifest(checkpoint.OS{}, s.StepDir(step))
		if errors.Is(s.Has(step), checkpoint.ErrNone) {
			continue // a run that goes on has removed it meanwhile
		}
		if err != nil {
			bad = errors.Join(bad, err)
			continue
		}
		l := listed{Step: step, Files: len(m.Files), Tokens: m.Tokens, Ranks: m.World.Ranks, Strategy: m.World.Strategy, Folder: s.StepDir(step)}
		for _, f := range m.Files {
			l.Bytes += f.Bytes
		}
		list = append(list, l)
	}
	return list, bad
}

// tellLeftovers names what is in the folder and is no step.
func tellLeftovers(w io.Writer, s *checkpoint.Store) {
	rest, err := s.Leftovers()
	if err != nil {
		return
	}
	for _, name := range rest {
		fmt.Fprintf(w, "not committed: %s\n", filepath.Join(s.Dir(), name))
	}
}

func newVerify() *cobra.Command {
	return &cobra.Command{Use: "verify DIR", Short: "Check every byte of every committed step of a run, or of one step", Args: operands("a run's or a step's folder"),
		RunE: func(c *cobra.Command, args []string) error {
			s, only, err := find(args[0])
			if err != nil {
				return err
			}
			var steps []int
			if only >= 0 {
				steps, err = []int{only}, s.VerifyStep(only)
			} else {
				steps, err = s.Verify()
			}
			tellLeftovers(c.ErrOrStderr(), s)
			if err != nil {
				return err
			}
			if len(steps) == 0 {
				return fmt.Errorf("%w: nothing is committed in %s", checkpoint.ErrNone, s.Dir())
			}
			list, _ := listing(s, steps)
			bytes := int64(0)
			for _, l := range list {
				bytes += l.Bytes
			}
			fmt.Fprintf(c.OutOrStdout(), "%d step(s), %s: all checksums agree; the newest is %d\n", len(steps), memory.FormatBytes(bytes), slices.Max(steps))
			return nil
		}}
}

func newDiff() *cobra.Command {
	var all bool
	c := &cobra.Command{Use: "diff A B", Short: "Compare two saved steps bit by bit, and name the first tensor that differs", Args: operands("a folder", "another")}
	c.Flags().BoolVar(&all, "all", false, "name every tensor that differs")
	c.RunE = func(c *cobra.Command, args []string) error {
		var open [2]*checkpoint.Saved
		for i, dir := range args {
			s, err := openSaved(dir)
			if err != nil {
				return err
			}
			defer s.Close()
			open[i] = s
		}
		n := 0
		err := checkpoint.Diff(open[0], open[1], func(d checkpoint.Difference) bool {
			n++
			fmt.Fprintln(c.OutOrStdout(), d)
			return all
		})
		if err != nil {
			return err
		}
		if n > 0 {
			return errDiffer
		}
		fmt.Fprintf(c.OutOrStdout(), "the same bits: steps %d and %d\n", open[0].Manifest.Step, open[1].Manifest.Step)
		return nil
	}
	return c
}

// errDiffer ends diff with exit code 1, as other tools of that name do.
var errDiffer = errors.New("the steps differ")

func newPrune() *cobra.Command {
	keep := 0
	c := &cobra.Command{Use: "prune DIR --keep N", Short: "Remove all steps of a run but the newest", Args: operands("a run's folder")}
	c.Flags().IntVar(&keep, "keep", 0, "how many of the newest steps (`N`, at least 1) stay")
	c.RunE = func(c *cobra.Command, args []string) error {
		if keep < 1 {
			return usagef("--keep %d: say how many steps stay, at least 1", keep)
		}
		s, only, err := find(args[0])
		if err != nil {
			return err
		}
		if only >= 0 {
			return usagef("%s is a step: prune takes the run's folder", args[0])
		}
		run := train.Folder(filepath.Dir(s.Dir()))
		lock, err := run.Lock()
		if err != nil {
			return err
		}
		defer lock.Close()
		if err := s.Clean(); err != nil {
			return err
		}
		if err := someSound(s, keep); err != nil {
			return err
		}
		gone, err := s.Prune(keep)
		steps, _ := s.Steps()
		fmt.Fprintf(c.OutOrStdout(), "%d step(s) removed, %d kept\n", len(gone), len(steps))
		return err
	}
	return c
}

// someSound refuses to remove steps while none of those that would stay is sound.
func someSound(s *checkpoint.Store, keep int) (bad error) {
	steps, err := s.Steps()
	if err != nil || len(steps) <= keep {
		return err
	}
	for _, step := range slices.Backward(steps) {
		err := s.VerifyStep(step)
		switch {
		case err == nil && step >= steps[len(steps)-keep]:
			return nil
		case err == nil:
			return fmt.Errorf("%w: none of the steps that would stay is sound, the newest that is, is %d: nothing is removed", bad, step)
		case bad == nil:
			bad = err
		}
	}
	return bad
}

func newConsolidate() *cobra.Command {
	out, all := "", false
	c := &cobra.Command{Use: "consolidate DIR --out FILE", Short: "Write a step's weights, whole, into one safetensors file", Args: operands("a run's or a step's folder")}
	c.Flags().StringVar(&out, "out", "", "the `FILE` to write, which must not exist")
	c.Flags().BoolVar(&all, "optimizer", false, "the optimizer's state too, as state/parameter")
	c.RunE = func(c *cobra.Command, args []string) error {
		if out == "" {
			return usagef("consolidate needs --out FILE")
		}
		s, err := openSaved(args[0])
		if err != nil {
			return err
		}
		defer s.Close()
		if err := s.Consolidate(checkpoint.OS{}, out, all); err != nil {
			return err
		}
		fmt.Fprintf(c.OutOrStdout(), "step %d is in %s\n", s.Manifest.Step, out)
		return nil
	}
	return c
}
