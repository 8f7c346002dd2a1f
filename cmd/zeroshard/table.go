package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// printTable prints rows in columns: the first is aligned left, the others right.
func printTable(w io.Writer, rows [][]string) {
	var widths []int
	for _, r := range rows {
		for i, cell := range r {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, r := range rows {
		line := ""
		for i, cell := range r {
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				line = cell + pad
				continue
			}
			line += "  " + pad + cell
		}
		fmt.Fprintln(w, strings.TrimRight(line, " "))
	}
}
