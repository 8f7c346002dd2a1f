package data

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// corpus is English text that every Go installation has: Newton's Opticks, which the standard library's tests read.
const corpus = "src/testdata/Isaac.Newton-Opticks.txt"

// DefaultPath finds the default corpus in the Go installation: under $GOROOT, under the one that built this program, or under
// what `go env GOROOT` says. The error (ErrNoCorpus) says where it looked and what to do.
func DefaultPath() (string, error) {
	return defaultPath([]func() string{
		func() string { return os.Getenv("GOROOT") },
		runtime.GOROOT, //lint:ignore SA1019 a wrong answer is harmless: the file is looked for there
		goEnv,
	})
}

func defaultPath(roots []func() string) (string, error) {
	var tried []string
	for _, root := range roots {
		r := root()
		if r == "" {
			continue
		}
		path := filepath.Join(r, filepath.FromSlash(corpus))
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path, nil
		}
		tried = append(tried, path)
	}
	where := "no Go installation found"
	if len(tried) > 0 {
		where = "not at " + strings.Join(tried, " nor at ")
	}
	return "", fmt.Errorf("%w: %s; pass a text or .bin file (--data FILE)", ErrNoCorpus, where)
}

func goEnv() string {
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}
