package lint

import (
	"go/ast"
	"strings"
)

var wordRules = []Rule{
	{"words", "one word per thing, see docs/glossary.md", findWords},
	{"machine-paths", "the project's files mean the same on every machine", findPaths},
}

// otherWords are words of other engines that must not name things here, and ours.
var otherWords = map[string]string{"bucket": "flat", "partition": "shard"}

func findWords(t *Tree) (out []Finding) {
	for _, f := range t.Files {
		if f.AST == nil {
			continue
		}
		ast.Inspect(f.AST, func(n ast.Node) bool {
			id, ok := n.(*ast.Ident)
			if !ok {
				return true
			}
			for _, word := range sortedKeys(otherWords) {
				if strings.Contains(strings.ToLower(id.Name), word) {
					out = append(out, t.at(n.Pos(), id.Name, "%s: say %s for %s", id.Name, otherWords[word], word))
				}
			}
			return true
		})
	}
	return out
}

// machinePaths are beginnings of paths of single machines, each in two parts so that this file passes.
var machinePaths = []string{"/wo" + "rk/", "/ho" + "me/", "/Us" + "ers/"}

func findPaths(t *Tree) (out []Finding) {
	for _, f := range t.Files {
		for i, line := range strings.Split(f.Text, "\n") {
			for _, p := range machinePaths {
				if strings.Contains(line, p) {
					out = append(out, Finding{Path: f.Path, Line: i + 1, Symbol: p, Text: "names a path of one machine: " + p})
				}
			}
		}
	}
	return out
}
