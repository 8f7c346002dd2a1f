package lint

import (
	"go/ast"
	"path"
	"regexp"
	"strings"
)

var docRules = []Rule{
	{"doc", "doc.go is where a reader starts: what the package is, what it never does, its invariants", findUndocumented},
	{"bits", "who sets an option must know whether it may change results", findBitless},
}

func findUndocumented(t *Tree) (out []Finding) {
	for _, dir := range sortedKeys(t.Packages) {
		p := t.Packages[dir]
		begin, example := "Package "+p.Files[0].AST.Name.Name, under(dir, "examples")
		if p.Files[0].AST.Name.Name == "main" {
			begin = "Command " + path.Base(dir)
		}
		documented := false
		for _, f := range p.Files {
			switch doc := f.AST.Doc.Text(); {
			case example: // one file, which explains itself in its own way
				documented = documented || doc != ""
			case path.Base(f.Path) == "doc.go":
				documented = strings.HasPrefix(doc, begin+" ")
			}
		}
		if !documented {
			out = append(out, t.at(p.Files[0].AST.Package, dir, "%s has no doc.go with a comment that begins %q", dir, begin))
		}
	}
	return out
}

// optionStructs are the structs of options by folder.
var optionStructs = map[string]string{"zero": "Options", ".": "Config"}

var bitsLine = regexp.MustCompile(`Bits: (un)?changed`)

func findBitless(t *Tree) (out []Finding) {
	t.each(func(p *Package, f *File, _ string, n ast.Node) {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || optionStructs[p.Path] != spec.Name.Name {
			return
		}
		s, ok := spec.Type.(*ast.StructType)
		if !ok {
			return
		}
		for _, field := range s.Fields.List {
			for _, name := range field.Names {
				if name.IsExported() && !bitsLine.MatchString(field.Doc.Text()+field.Comment.Text()) {
					out = append(out, t.at(name.Pos(), spec.Name.Name+"."+name.Name, "the comment of option %s says neither \"Bits: unchanged\" nor \"Bits: changed\"", name.Name))
				}
			}
		}
	})
	return out
}
