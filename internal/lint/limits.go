package lint

import (
	"fmt"
	"go/ast"
	"go/scanner"
	"go/token"
	"path"
	"strings"
)

// The limits. Lines of files and functions count as an editor shows them; those of a budget count without
// comments and blank lines, so that explaining costs nothing.
const (
	maxFileLines = 500
	maxFuncLines = 70
	maxParams    = 5
	maxFields    = 12
)

// A budget bounds the code of several files together.
var budgets = []struct {
	name  string
	globs []string
	lines int
}{
	{"compiler, place and check", []string{"zero/compile*.go", "zero/place*.go", "zero/waits*.go", "zero/check*.go"}, 1500},
	{"engine", []string{"zero/engine*.go"}, 500},
}

var limitRules = []Rule{
	{"file-length", "a file has one reason to exist and is read in one go", findLongFiles},
	{"func-length", "a function does one thing and is seen at once", findLongFuncs},
	{"params", "many parameters are a struct that nobody named", findManyParams},
	{"fields", "behaviour on many fields is several things in one", findManyFields},
	{"budgets", "if a pass needs a flag from another pass, stop and redraw", findBudgets},
}

func generated(f *File) bool { return ast.IsGenerated(f.AST) }

func findLongFiles(t *Tree) (out []Finding) {
	for _, f := range t.Files {
		if f.AST == nil || f.Test() || generated(f) {
			continue
		}
		if n := strings.Count(f.Text, "\n"); n > maxFileLines {
			out = append(out, t.at(f.AST.Package, path.Base(f.Path), "%d lines, at most %d", n, maxFileLines))
		}
	}
	return out
}

// eachFunc calls visit for every function declaration outside tests and generated files.
func (t *Tree) eachFunc(visit func(f *ast.FuncDecl)) {
	t.each(func(_ *Package, file *File, _ string, n ast.Node) {
		if f, ok := n.(*ast.FuncDecl); ok && !generated(file) {
			visit(f)
		}
	})
}

func findLongFuncs(t *Tree) (out []Finding) {
	t.eachFunc(func(f *ast.FuncDecl) {
		if n := t.Fset.Position(f.End()).Line - t.Fset.Position(f.Pos()).Line + 1; n > maxFuncLines {
			out = append(out, t.at(f.Pos(), declName(f), "%s has %d lines, at most %d", declName(f), n, maxFuncLines))
		}
	})
	return out
}

// findManyParams looks at functions and at methods of interfaces. A context or a stream in the first place does not count: by
// convention it comes first, and says where a call happens, not what it does.
func findManyParams(t *Tree) (out []Finding) {
	check := func(pos token.Pos, name string, f *ast.FuncType) {
		n := f.Params.NumFields()
		if n > 0 && ambient(f.Params.List[0].Type) {
			n--
		}
		if n > maxParams {
			out = append(out, t.at(pos, name, "%s has %d parameters, at most %d", name, n, maxParams))
		}
	}
	t.each(func(p *Package, _ *File, decl string, n ast.Node) {
		if testing(p.Path) {
			return
		}
		switch n := n.(type) {
		case *ast.FuncDecl:
			check(n.Pos(), decl, n.Type)
		case *ast.InterfaceType:
			for _, m := range n.Methods.List {
				if f, ok := m.Type.(*ast.FuncType); ok {
					check(m.Pos(), m.Names[0].Name, f)
				}
			}
		}
	})
	return out
}

func ambient(e ast.Expr) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	return ok && (x.Name == "context" && s.Sel.Name == "Context" || x.Name == "device" && s.Sel.Name == "Stream")
}

func findManyFields(t *Tree) (out []Finding) {
	methods := map[string]bool{} // folder.Type
	key := func(dir, name string) string { return dir + "." + name }
	t.eachFunc(func(f *ast.FuncDecl) {
		if f.Recv != nil {
			dir := path.Dir(t.Fset.Position(f.Pos()).Filename)
			methods[key(dir, receiver(f.Recv.List[0].Type))] = true
		}
	})
	t.each(func(p *Package, _ *File, _ string, n ast.Node) {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || !methods[key(p.Path, spec.Name.Name)] || testing(p.Path) {
			return
		}
		if s, ok := spec.Type.(*ast.StructType); ok && s.Fields.NumFields() > maxFields {
			out = append(out, t.at(spec.Pos(), spec.Name.Name, "%s has methods and %d fields, at most %d", spec.Name.Name, s.Fields.NumFields(), maxFields))
		}
	})
	return out
}

func findBudgets(t *Tree) (out []Finding) {
	for _, b := range budgets {
		total, first := 0, ""
		var parts []string
		for _, f := range t.Files {
			if f.AST == nil || f.Test() || !matches(f.Path, b.globs...) {
				continue
			}
			n := codeLines(f.Text)
			total += n
			parts = append(parts, fmt.Sprintf("%s %d", path.Base(f.Path), n))
			if first == "" {
				first = f.Path
			}
		}
		if total > b.lines {
			out = append(out, Finding{Path: first, Line: 1, Symbol: b.name,
				Text: fmt.Sprintf("%s: %d lines of code, at most %d (%s)", b.name, total, b.lines, strings.Join(parts, ", "))})
		}
	}
	return out
}

// matches reports whether a path matches one of the globs.
func matches(name string, globs ...string) bool {
	for _, g := range globs {
		if ok, err := path.Match(g, name); ok && err == nil {
			return true
		}
	}
	return false
}

// codeLines counts lines of Go with anything but comments and blanks.
func codeLines(text string) int {
	fset := token.NewFileSet()
	file := fset.AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, []byte(text), nil, 0)
	lines := map[int]bool{}
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			return len(lines)
		}
		if tok == token.SEMICOLON && lit == "\n" {
			continue // the scanner's own
		}
		first := file.Line(pos)
		for i := range strings.Count(lit, "\n") + 1 {
			lines[first+i] = true
		}
	}
}
