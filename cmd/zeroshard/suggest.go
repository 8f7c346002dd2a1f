package main

import "strings"

// nearest returns the candidate that text was probably meant to be: the one with the fewest edits, when those are few against
// the length. "" if none is near.
func nearest(text string, candidates []string) string {
	best, bestEdits := "", len(text)/3+1
	for _, c := range candidates {
		e := edits(strings.ToLower(text), strings.ToLower(c))
		if e < bestEdits || e == bestEdits && best == "" {
			best, bestEdits = c, e
		}
	}
	return best
}

// edits counts insertions, deletions, replacements and swaps of neighbours that turn a into b (optimal string alignment).
func edits(a, b string) int {
	before := make([]int, len(b)+1) // rows i−2, i−1 and i of the table
	above := make([]int, len(b)+1)
	row := make([]int, len(b)+1)
	for j := range above {
		above[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := above[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			row[j] = min(change, above[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, above, row = above, row, before
	}
	return above[len(b)]
}
