package lint

import (
	"go/ast"
	"go/types"
	"path"
	"strings"
)

// The tree is type-checked as far as its own source goes: packages from outside are empty, and errors are ignored. Rules so know
// which name means what, and the type of whatever does not depend on the standard library.

type importer struct {
	tree *Tree
	done map[string]*types.Package
}

// check fills in Types and Info of every package.
func (t *Tree) check() {
	im := &importer{tree: t, done: map[string]*types.Package{}}
	for _, dir := range sortedKeys(t.Packages) {
		_, _ = im.Import(importPath(dir))
	}
}

func importPath(dir string) string {
	if dir == "." {
		return module
	}
	return module + "/" + dir
}

// folder is the folder of an import path of this module.
func folder(importPath string) (string, bool) {
	if importPath == module {
		return ".", true
	}
	return strings.CutPrefix(importPath, module+"/")
}

// Import type-checks a package of the tree, or makes an empty one.
func (im *importer) Import(name string) (*types.Package, error) {
	if p := im.done[name]; p != nil {
		return p, nil
	}
	dir, ours := folder(name)
	p := im.tree.Packages[dir]
	if !ours || p == nil {
		empty := types.NewPackage(name, packageName(name))
		empty.MarkComplete()
		im.done[name] = empty
		return empty, nil
	}
	im.done[name] = types.NewPackage(name, packageName(name)) // for a cycle, which the compiler will report
	p.Info = &types.Info{
		Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{}, Uses: map[*ast.Ident]types.Object{},
		Selections: map[*ast.SelectorExpr]*types.Selection{},
	}
	var files []*ast.File
	for _, f := range p.Files {
		files = append(files, f.AST)
	}
	conf := types.Config{Importer: im, Error: func(error) {}, FakeImportC: true}
	p.Types, _ = conf.Check(name, im.tree.Fset, files, p.Info)
	im.done[name] = p.Types
	return p.Types, nil
}

// packageName guesses a package's name by its path: the last part that is no version.
func packageName(name string) string {
	base := path.Base(name)
	if len(base) > 1 && base[0] == 'v' && strings.Trim(base[1:], "0123456789") == "" {
		base = path.Base(path.Dir(name))
	}
	return base
}

// isName reports whether e is name of the package at importPath, as in time.Now.
func (p *Package) isName(e ast.Expr, importPath, name string) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != name {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	if !ok {
		return false
	}
	pkg, ok := p.Info.Uses[x].(*types.PkgName)
	return ok && pkg.Imported().Path() == importPath
}

// isBuiltin reports whether e is the builtin function name.
func (p *Package) isBuiltin(e ast.Expr, name string) bool {
	id, ok := e.(*ast.Ident)
	if !ok || id.Name != name {
		return false
	}
	_, ok = p.Info.Uses[id].(*types.Builtin)
	return ok
}

// isError reports whether e is an error: by its type, or by its name where the type comes from outside the tree.
func (p *Package) isError(e ast.Expr) bool {
	if t := p.Info.Types[e].Type; t != nil && t != types.Typ[types.Invalid] {
		return types.Implements(t, types.Universe.Lookup("error").Type().Underlying().(*types.Interface))
	}
	name := ""
	switch e := e.(type) {
	case *ast.Ident:
		name = e.Name
	case *ast.SelectorExpr:
		name = e.Sel.Name
	case *ast.CallExpr:
		if s, ok := e.Fun.(*ast.SelectorExpr); ok && s.Sel.Name == "Err" {
			name = "err"
		}
	}
	lower := strings.ToLower(name)
	return lower == "cause" || strings.HasPrefix(lower, "err") && lower != "errors" || strings.HasSuffix(name, "Err")
}
