package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// helpWidth is the longest line of help.
const helpWidth = 100

// flagHelp prints a command's flags: name, value and default on one line, the meaning below it, so that the last words of a
// meaning, which say whether the flag can change bits, are the last words that one reads.
func flagHelp(c *cobra.Command, _ []string) {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\nUsage:\n  %s\n\nFlags:\n", c.Long, c.UseLine())
	c.Flags().VisitAll(func(f *pflag.Flag) {
		name, meaning := pflag.UnquoteUsage(f)
		line := "  --" + f.Name
		switch {
		case name != "" && f.NoOptDefVal != "":
			line += "[=" + name + "]"
		case name != "":
			line += " " + name
		}
		if show := f.DefValue; show != "" && show != "[]" && show != "false" {
			line += "  (default " + show + ")"
		}
		fmt.Fprintf(&b, "%s\n%s\n", line, wrapText(meaning, "        "))
	})
	fmt.Fprint(c.OutOrStdout(), b.String())
}

// wrapText breaks text into lines of helpWidth, each after indent.
func wrapText(text, indent string) string {
	var lines []string
	line := indent
	for _, word := range strings.Fields(text) {
		if len(line)+1+len(word) > helpWidth && line != indent {
			lines, line = append(lines, line), indent
		}
		if line != indent {
			line += " "
		}
		line += word
	}
	return strings.Join(append(lines, line), "\n")
}
