package lint

import (
	"go/ast"
	"strconv"
	"strings"
)

var callRules = []Rule{
	{"clock-and-chance", "results must not depend on when or by luck; use prng, and leave clocks to those who report", findClock},
	{"wrap", "an error that is put into another must stay findable: errors.Is and errors.As need %w", findUnwrapped},
	{"panic", "a panic means a bug and comes from internal/invariants; what input can cause is an error", findPanic},
}

// timed are the folders that may look at the clock.
var timed = []string{"train", "report", "cmd", "bench", "examples"}

func findClock(t *Tree) (out []Finding) {
	t.each(func(p *Package, f *File, decl string, n ast.Node) {
		if under(p.Path, timed...) || testing(p.Path) {
			return
		}
		if spec, ok := n.(*ast.ImportSpec); ok {
			name, err := strconv.Unquote(spec.Path.Value)
			if err == nil && (name == "math/rand" || name == "math/rand/v2") {
				out = append(out, t.at(n.Pos(), name, "imports %s", name))
			}
		}
		if sel, ok := n.(*ast.SelectorExpr); ok {
			for _, name := range []string{"Now", "Since", "Until"} {
				if p.isName(sel, "time", name) {
					out = append(out, t.at(n.Pos(), decl, "time.%s in %s", name, p.Path))
				}
			}
		}
	})
	return out
}

func findUnwrapped(t *Tree) (out []Finding) {
	t.each(func(p *Package, f *File, decl string, n ast.Node) {
		call, ok := n.(*ast.CallExpr)
		if !ok || !p.isName(call.Fun, "fmt", "Errorf") || call.Ellipsis.IsValid() || len(call.Args) == 0 {
			return
		}
		wraps, errs := 0, 0
		ast.Inspect(call.Args[0], func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok {
				wraps += strings.Count(lit.Value, "%w")
			}
			return true
		})
		for _, a := range call.Args[1:] {
			if p.isError(a) {
				errs++
			}
		}
		if wraps < errs {
			out = append(out, t.at(n.Pos(), decl, "fmt.Errorf with %d errors and %d %%w", errs, wraps))
		}
	})
	return out
}

func findPanic(t *Tree) (out []Finding) {
	t.each(func(p *Package, f *File, decl string, n ast.Node) {
		if call, ok := n.(*ast.CallExpr); ok && p.isBuiltin(call.Fun, "panic") && p.Path != "internal/invariants" && !testing(p.Path) {
			out = append(out, t.at(n.Pos(), decl, "%s panics", decl))
		}
	})
	return out
}
