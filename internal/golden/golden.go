package golden

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

var update = flag.Bool("update", false, "rewrite golden files with what the tests got")

// T is what Check needs of a testing.TB.
type T interface {
	Helper()
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
	Logf(format string, args ...any)
}

// Check fails t if got is not the content of the file at path (relative to the test's package, slashes). The message shows the first
// line that differs. With -update it writes the file instead.
func Check(t T, path, got string) {
	t.Helper()
	check(t, path, got, *update)
}

func check(t T, path, got string, update bool) {
	t.Helper()
	file := filepath.FromSlash(path)
	want, err := os.ReadFile(file)
	if err != nil && !(errors.Is(err, fs.ErrNotExist) && update) {
		t.Fatalf("golden: %v (run the test with -update to make the file)", err)
		return
	}
	if err == nil && string(want) == got {
		return
	}
	if !update {
		t.Errorf("golden: %s differs: %s\nIf the change is meant, run the test with -update and review the diff.", path, firstDiff(string(want), got))
		return
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(got), 0o644)); err != nil {
		t.Fatalf("golden: %v", err)
		return
	}
	t.Logf("golden: wrote %s", path)
}

// firstDiff shows the first line in which two different texts differ.
func firstDiff(want, got string) string {
	w, g := strings.SplitAfter(want, "\n"), strings.SplitAfter(got, "\n")
	i := 0
	for i < len(w) && i < len(g) && w[i] == g[i] {
		i++
	}
	line := func(lines []string) string {
		if i >= len(lines) || lines[i] == "" {
			return "(end of text)"
		}
		return fmt.Sprintf("%q", lines[i])
	}
	return fmt.Sprintf("line %d\n\twant %s\n\tgot  %s", i+1, line(w), line(g))
}
