package lint

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

const module = "zeroshard"

// Tree is the source of the project, parsed.
type Tree struct {
	Fset     *token.FileSet
	Files    []*File             // all text files, by path
	Packages map[string]*Package // by folder, "." is the root; folders with test files alone are not here
}

// File is one text file. Path is relative to the root, with slashes.
type File struct {
	Path string
	Text string
	AST  *ast.File // nil if it is not Go
}

// Test reports whether the file is only built for tests.
func (f *File) Test() bool { return strings.HasSuffix(f.Path, "_test.go") }

// Package is the files of a folder that are not tests, all platforms and tags together.
type Package struct {
	Path  string
	Files []*File
	Info  *types.Info
	Types *types.Package
}

// Finding is a place that breaks a rule. Symbol is the function, type or import at fault; allowances name it.
type Finding struct {
	Path   string
	Line   int
	Symbol string
	Text   string
}

func (f Finding) String() string { return fmt.Sprintf("%s:%d: %s", f.Path, f.Line, f.Text) }

// Rule finds the places that break it.
type Rule struct {
	Name string
	Why  string
	Find func(*Tree) []Finding
}

// Rules are all rules.
func Rules() []Rule {
	return slices.Concat(floorRules, limitRules, strategyRules, stateRules, callRules, docRules, wordRules, roundingRules)
}

// Load reads the tree at root. Folders that start with "." (but .ci), runs, bin, testdata and other modules are left out.
func Load(root string) (*Tree, error) {
	files := map[string]string{}
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		if d.IsDir() {
			if rel != "." && skipped(name) {
				return filepath.SkipDir
			}
			return nil
		}
		if d.Type().IsRegular() && isText(rel) {
			text, err := os.ReadFile(name)
			if utf8.Valid(text) { // else a program that somebody built here
				files[filepath.ToSlash(rel)] = string(text)
			}
			return err
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("lint: reading the tree: %w", err)
	}
	return Parse(files)
}

func skipped(dir string) bool {
	base := filepath.Base(dir)
	if slices.Contains([]string{"runs", "bin", "testdata", "shared"}, base) || strings.HasPrefix(base, ".") && base != ".ci" {
		return true
	}
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

func isText(name string) bool {
	switch filepath.Ext(name) {
	case ".go", ".md", ".s", ".sh", ".txt", ".yml", ".yaml", ".mod", "":
		return true
	}
	return false
}

// Parse makes a tree of files given as path and text.
func Parse(files map[string]string) (*Tree, error) {
	t := &Tree{Fset: token.NewFileSet(), Packages: map[string]*Package{}}
	for name, text := range files {
		f := &File{Path: name, Text: text}
		if path.Ext(name) == ".go" {
			file, err := parser.ParseFile(t.Fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return nil, fmt.Errorf("lint: %w", err)
			}
			f.AST = file
		}
		t.Files = append(t.Files, f)
	}
	slices.SortFunc(t.Files, func(a, b *File) int { return strings.Compare(a.Path, b.Path) })
	for _, f := range t.Files {
		if f.AST == nil || f.Test() {
			continue
		}
		dir := path.Dir(f.Path)
		if t.Packages[dir] == nil {
			t.Packages[dir] = &Package{Path: dir}
		}
		t.Packages[dir].Files = append(t.Packages[dir].Files, f)
	}
	t.check()
	return t, nil
}

// at is a finding at a position.
func (t *Tree) at(pos token.Pos, symbol, format string, args ...any) Finding {
	p := t.Fset.Position(pos)
	return Finding{Path: p.Filename, Line: p.Line, Symbol: symbol, Text: fmt.Sprintf(format, args...)}
}

// each calls visit for every node of the package files that are not tests, with the name of the declaration around it.
func (t *Tree) each(visit func(p *Package, f *File, decl string, n ast.Node)) {
	for _, dir := range sortedKeys(t.Packages) {
		p := t.Packages[dir]
		for _, f := range p.Files {
			for _, d := range f.AST.Decls {
				name := declName(d)
				ast.Inspect(d, func(n ast.Node) bool {
					if n != nil {
						visit(p, f, name, n)
					}
					return true
				})
			}
		}
	}
}

// declName is "F" or "T.F" for functions and methods, "" for others.
func declName(d ast.Decl) string {
	f, ok := d.(*ast.FuncDecl)
	if !ok {
		return ""
	}
	if f.Recv != nil && len(f.Recv.List) == 1 {
		if r := receiver(f.Recv.List[0].Type); r != "" {
			return r + "." + f.Name.Name
		}
	}
	return f.Name.Name
}

// receiver is the name of a receiver's type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	}
	return ""
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// testing reports whether a folder is there for tests: a conformance suite (…test) or stage_test. Such code keeps the floors and
// lengths, and may do what tests do.
func testing(dir string) bool { return strings.HasSuffix(dir, "test") }

// under reports whether folder dir is one of roots or inside one.
func under(dir string, roots ...string) bool {
	for _, r := range roots {
		if dir == r || strings.HasPrefix(dir, r+"/") {
			return true
		}
	}
	return false
}
