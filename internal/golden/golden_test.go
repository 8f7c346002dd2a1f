package golden

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// recorder is a test that only remembers what it was told.
type recorder struct{ log []string }

func (r *recorder) Helper()                   {}
func (r *recorder) Errorf(f string, a ...any) { r.log = append(r.log, "error: "+fmt.Sprintf(f, a...)) }
func (r *recorder) Fatalf(f string, a ...any) { r.log = append(r.log, "fatal: "+fmt.Sprintf(f, a...)) }
func (r *recorder) Logf(f string, a ...any)   { r.log = append(r.log, "log: "+fmt.Sprintf(f, a...)) }

func TestCheck(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "plan.txt")
	run := func(got string, update bool) string {
		r := &recorder{}
		check(r, path, got, update)
		return strings.Join(r.log, "\n")
	}
	for _, step := range []struct {
		name, got string
		update    bool
		want      string // part of what the test is told
	}{
		{"missing file", "a\n", false, "fatal: golden: open"},
		{"update makes file and folder", "a\nb\n", true, "log: golden: wrote"},
		{"equal", "a\nb\n", false, ""},
		{"equal, nothing to write", "a\nb\n", true, ""},
		{"other line", "a\nc\n", false, "line 2\n\twant \"b\\n\"\n\tgot  \"c\\n\""},
		{"shorter", "a\n", false, "line 2\n\twant \"b\\n\"\n\tgot  (end of text)"},
		{"longer", "a\nb\nc", false, "line 3\n\twant (end of text)\n\tgot  \"c\""},
		{"last newline", "a\nb", false, "line 2\n\twant \"b\\n\"\n\tgot  \"b\""},
		{"update rewrites", "z", true, "log: golden: wrote"},
		{"rewritten", "z", false, ""},
	} {
		got := run(step.got, step.update)
		if !strings.Contains(got, step.want) || (step.want == "" && got != "") {
			t.Errorf("%s: test was told %q, want %q", step.name, got, step.want)
		}
	}
}
