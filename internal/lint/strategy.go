package lint

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strconv"
	"strings"
)

// Stages are rows of one table, and the compiler alone reads a row. What asks for the stage elsewhere would grow a branch per stage.
var strategyRules = []Rule{
	{"stage-numbers", "a stage is a row of zero.Stages; ask the plan or the strategy what you need to know", findStageNumbers},
	{"strategy-fields", "only the compiler reads where state rests; others read the plan", findStrategyFields},
}

var (
	strategyFiles = []string{"zero/strategy*.go"}
	compilerFiles = []string{"zero/strategy*.go", "zero/compile*.go"}
)

func findStageNumbers(t *Tree) (out []Finding) {
	t.each(func(p *Package, f *File, decl string, n ast.Node) {
		if matches(f.Path, strategyFiles...) {
			return
		}
		switch n := n.(type) {
		case *ast.BinaryExpr:
			compares := slices.Contains([]token.Token{token.EQL, token.NEQ, token.LSS, token.LEQ, token.GTR, token.GEQ}, n.Op)
			if compares && (isStage(n.X) && p.fixed(n.Y) || isStage(n.Y) && p.fixed(n.X) || namesStage(n.X) || namesStage(n.Y)) {
				out = append(out, t.at(n.Pos(), decl, "a stage is compared with a constant"))
			}
		case *ast.SwitchStmt:
			if n.Tag != nil && isStage(n.Tag) {
				out = append(out, t.at(n.Pos(), decl, "a switch over stages"))
			}
		case *ast.CaseClause:
			if slices.ContainsFunc(n.List, namesStage) {
				out = append(out, t.at(n.Pos(), decl, "a stage is compared with a constant"))
			}
		}
	})
	return out
}

// isStage reports whether e is a variable or field called stage.
func isStage(e ast.Expr) bool {
	name := ""
	switch e := e.(type) {
	case *ast.Ident:
		name = e.Name
	case *ast.SelectorExpr:
		name = e.Sel.Name
	case *ast.ParenExpr:
		return isStage(e.X)
	}
	return strings.EqualFold(name, "stage") || strings.EqualFold(name, "zerostage")
}

// fixed reports whether e is a number that somebody wrote down: a literal or a named constant, not the length of a table.
func (p *Package) fixed(e ast.Expr) bool {
	_, call := e.(*ast.CallExpr)
	return !call && p.Info.Types[e].Value != nil
}

// namesStage reports whether e is a string like "stage3".
func namesStage(e ast.Expr) bool {
	lit, ok := e.(*ast.BasicLit)
	if !ok || lit.Kind != token.STRING {
		return false
	}
	s, err := strconv.Unquote(lit.Value)
	digits, found := strings.CutPrefix(s, "stage")
	return err == nil && found && digits != "" && strings.Trim(digits, "0123456789") == ""
}

func findStrategyFields(t *Tree) (out []Finding) {
	t.each(func(p *Package, f *File, decl string, n ast.Node) {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok || matches(f.Path, compilerFiles...) {
			return
		}
		s := p.Info.Selections[sel]
		if s == nil || s.Kind() != types.FieldVal {
			return
		}
		name := zeroType(s.Recv())
		if name == "Rest" || name == "Strategy" && sel.Sel.Name != "Name" {
			out = append(out, t.at(n.Pos(), decl, "%s.%s is read", name, sel.Sel.Name))
		}
	})
	return out
}

// zeroType is the name of a type that package zero declares, "" for others.
func zeroType(t types.Type) string {
	if ptr, ok := t.(*types.Pointer); ok {
		t = ptr.Elem()
	}
	named, ok := t.(*types.Named)
	if !ok || named.Obj().Pkg() == nil || named.Obj().Pkg().Path() != module+"/zero" {
		return ""
	}
	return named.Obj().Name()
}
