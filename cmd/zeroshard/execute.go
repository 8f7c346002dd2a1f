package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Execute runs one command line and returns its exit code.
func Execute(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(stdin)
	out := &checked{w: stdout}
	root.SetOut(out)
	root.SetErr(stderr)
	err := root.Execute()
	if err == nil {
		err = out.err
	}
	if err != nil {
		fmt.Fprintln(stderr, complaint(err))
	}
	return exitCode(err)
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "zeroshard",
		Short:         "Train models that do not fit on one device (ZeRO stages 0 to 3)",
		Long:          "zeroshard trains GPT-style models whose parameters, gradients and optimizer state are sharded over ranks.\nStage, world size and schedule never change a bit of the result.",
		Args:          noCommand,
		RunE:          func(c *cobra.Command, _ []string) error { return c.Help() },
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetFlagErrorFunc(flagError)
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(newTrain(), newGenerate(), newEval(), newPlan(), newCheckpoint(), newBench(), newPrepare(), newDash(), newVersion())
	return root
}

// maxFaults bounds how many faults one complaint lists: it stays on a screen whatever was typed.
const maxFaults = 5

// complaint is what stderr gets: a line for each fault.
func complaint(err error) string {
	text := strings.TrimPrefix(strings.TrimSpace(err.Error()), "zeroshard: ")
	if exitCode(err) != exitUsage {
		return "zeroshard: " + text
	}
	lines := strings.Split(text, "\n")
	if len(lines) > maxFaults {
		lines = append(lines[:maxFaults-1], fmt.Sprintf("and %d more", len(lines)-maxFaults+1))
	}
	return "zeroshard: " + strings.Join(lines, "\nzeroshard: ")
}

// noCommand refuses what is no command.
func noCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, s := range c.Commands() {
		if s.IsAvailableCommand() {
			names = append(names, s.Name())
		}
	}
	return usagef("unknown command %q%s", args[0], didYouMean(args[0], names, "", "; there are "+strings.Join(names, ", ")))
}

// noArguments refuses what is no flag.
func noArguments(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if f := c.Flags().Lookup("resume"); f != nil && f.Changed && strings.Trim(args[0], "0123456789") == "" {
		return usagef("unexpected argument %q: a step is given as --resume=%s", args[0], args[0])
	}
	return usagef("unexpected argument %q: all settings are flags", args[0])
}

func didYouMean(text string, candidates []string, prefix, otherwise string) string {
	if near := nearest(text, candidates); near != "" {
		return fmt.Sprintf(": did you mean %s%s?", prefix, near)
	}
	return otherwise
}

// flagError puts pflag's errors into one short line.
func flagError(c *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var value *pflag.InvalidValueError
	var missing *pflag.ValueRequiredError
	switch {
	case errors.As(err, &unknown):
		var names []string
		c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		name := unknown.GetSpecifiedName()
		if unknown.GetSpecifiedShortnames() != "" {
			return usagef("unknown flag -%s: flags have two dashes", name)
		}
		return usagef("unknown flag --%s%s", name, didYouMean(name, names, "--", ""))
	case errors.As(err, &value):
		return usagef("--%s %q: %s", value.GetFlag().Name, value.GetValue(), wanted(value))
	case errors.As(err, &missing):
		return usagef("--%s needs a value", missing.GetSpecifiedName())
	}
	return usagef("%v", err)
}

// wanted says what a flag's value must look like.
func wanted(e *pflag.InvalidValueError) string {
	switch e.GetFlag().Value.Type() {
	case "int":
		return "want a whole number"
	case "uint64":
		return "want a whole number from 0 to 18446744073709551615"
	case "float64":
		return "want a number"
	case "bool":
		return "want true or false"
	}
	return errors.Unwrap(e).Error()
}
