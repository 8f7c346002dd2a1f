package lint

import (
	"go/ast"
	"go/token"
	"go/types"
)

var roundingRules = []Rule{{
	Name: "rounding",
	Why:  "the compiler may fuse a*b+c on some machines and not on others: write float32(a*b)+c, or fuse on purpose",
	Find: findFusable,
}}

// unrounded are folders whose floats are only for people to read.
var unrounded = []string{"cmd", "report", "examples", "bench"}

func findFusable(t *Tree) (out []Finding) {
	t.each(func(p *Package, f *File, decl string, n ast.Node) {
		if under(p.Path, unrounded...) || testing(p.Path) {
			return
		}
		var terms []ast.Expr
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if n.Op == token.ADD || n.Op == token.SUB {
				terms = []ast.Expr{n.X, n.Y}
			}
		case *ast.AssignStmt:
			if n.Tok == token.ADD_ASSIGN || n.Tok == token.SUB_ASSIGN {
				terms = n.Rhs
			}
		}
		for _, e := range terms {
			if p.product(e) {
				out = append(out, t.at(e.Pos(), decl, "a product of floats is added without rounding it first"))
			}
		}
	})
	return out
}

// product reports whether e is a product of floats that is not rounded by a conversion, nor computed by the compiler.
func (p *Package) product(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return p.product(e.X)
	case *ast.UnaryExpr:
		return e.Op == token.SUB && p.product(e.X)
	case *ast.BinaryExpr:
		tv := p.Info.Types[e]
		if e.Op != token.MUL || tv.Value != nil || tv.Type == nil {
			return false
		}
		b, ok := tv.Type.Underlying().(*types.Basic)
		return ok && b.Info()&types.IsFloat != 0
	}
	return false
}
