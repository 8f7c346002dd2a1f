package lint_test

import (
	"testing"

	"zeroshard/internal/lint"
)

// The tree keeps all rules.
func TestTree(t *testing.T) {
	tree, err := lint.Load("../..")
	if err != nil {
		t.Fatal(err)
	}
	if len(tree.Packages) < 10 {
		t.Fatalf("only %d packages found", len(tree.Packages))
	}
	used := map[lint.Allowance]bool{}
	allowed := func(rule string, f lint.Finding) bool {
		for _, a := range lint.Allowed {
			if a.Rule == rule && a.Path == f.Path && a.Symbol == f.Symbol {
				used[a] = true
				return true
			}
		}
		return false
	}
	for _, rule := range lint.Rules() {
		t.Run(rule.Name, func(t *testing.T) {
			for _, f := range rule.Find(tree) {
				if !allowed(rule.Name, f) {
					t.Errorf("%v (%s)", f, rule.Why)
				}
			}
		})
	}
	for _, a := range lint.Allowed {
		if !used[a] {
			t.Errorf("the allowance %+v is not needed any more", a)
		}
		if a.Reason == "" {
			t.Errorf("the allowance %+v has no reason", a)
		}
	}
}
