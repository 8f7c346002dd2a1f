package lint

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
)

// A program is wired in main and the facade; nothing happens before, and nothing is shared behind the callers' backs.
var stateRules = []Rule{
	{"init", "nothing registers itself: what a program is made of is passed in", findInit},
	{"package-state", "state that changes belongs to a value that somebody made and passes on", findPackageState},
}

func findInit(t *Tree) (out []Finding) {
	t.eachFunc(func(f *ast.FuncDecl) {
		if f.Name.Name == "init" && f.Recv == nil {
			out = append(out, t.at(f.Pos(), "init", "an init function"))
		}
	})
	return out
}

func findPackageState(t *Tree) (out []Finding) {
	t.each(func(p *Package, _ *File, decl string, n ast.Node) {
		for _, e := range changed(p, n) {
			if v := packageVar(p, e); v != nil {
				out = append(out, t.at(n.Pos(), v.Name(), "package variable %s is changed, or handed out to be", v.Name()))
			}
		}
		if spec, ok := n.(*ast.ValueSpec); ok && decl == "" {
			for _, name := range spec.Names {
				if v := p.Info.Defs[name]; v != nil && v.Parent() == p.Types.Scope() && holdsLock(p, spec) {
					out = append(out, t.at(n.Pos(), name.Name, "package variable %s exists to change", name.Name))
				}
			}
		}
	})
	return out
}

// changed returns what statement or expression n changes or may let others change.
func changed(p *Package, n ast.Node) []ast.Expr {
	switch n := n.(type) {
	case *ast.AssignStmt:
		if n.Tok != token.DEFINE {
			return n.Lhs
		}
	case *ast.IncDecStmt:
		return []ast.Expr{n.X}
	case *ast.RangeStmt:
		if n.Tok == token.ASSIGN {
			return []ast.Expr{n.Key, n.Value}
		}
	case *ast.UnaryExpr:
		if id, ok := n.X.(*ast.Ident); ok && n.Op == token.AND {
			return []ast.Expr{id}
		}
	case *ast.CallExpr:
		if p.isBuiltin(n.Fun, "delete") || p.isBuiltin(n.Fun, "clear") || p.isBuiltin(n.Fun, "copy") {
			return n.Args[:1]
		}
	}
	return nil
}

// packageVar is the package variable that e is a part of, nil if none.
func packageVar(p *Package, e ast.Expr) types.Object {
	switch e := e.(type) {
	case *ast.Ident:
		v, ok := p.Info.Uses[e].(*types.Var)
		if ok && v.Pkg() != nil && v.Parent() == v.Pkg().Scope() {
			return v
		}
	case *ast.SelectorExpr:
		if x, ok := e.X.(*ast.Ident); ok {
			if _, qualified := p.Info.Uses[x].(*types.PkgName); qualified {
				return packageVar(p, e.Sel)
			}
		}
		return packageVar(p, e.X)
	case *ast.IndexExpr:
		return packageVar(p, e.X)
	case *ast.SliceExpr:
		return packageVar(p, e.X)
	case *ast.StarExpr:
		return packageVar(p, e.X)
	case *ast.ParenExpr:
		return packageVar(p, e.X)
	}
	return nil
}

// holdsLock reports whether a declaration speaks of a lock, a pool or an atomic.
func holdsLock(p *Package, spec *ast.ValueSpec) (found bool) {
	ast.Inspect(spec, func(n ast.Node) bool {
		if _, ok := n.(*ast.FuncLit); ok {
			return false // its own business
		}
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		locks := []string{"Mutex", "RWMutex", "Map", "Pool", "Once", "WaitGroup", "Cond"}
		found = found || p.isName(sel, "sync/atomic", sel.Sel.Name) ||
			slices.Contains(locks, sel.Sel.Name) && p.isName(sel, "sync", sel.Sel.Name)
		return true
	})
	return found
}
