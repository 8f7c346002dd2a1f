package cpu

import (
	"bufio"
	"os"
	"regexp"
	"strings"
	"testing"
)

// The generator's allocator hands out any register: loops for CPUs without AVX-512 must not use those that only it has.
func TestAVX2RegistersOnly(t *testing.T) {
	f, err := os.Open("loops_amd64.s")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	later, name, functions := regexp.MustCompile(`\b([XY](1[6-9]|2\d|3[01])|Z\d+|K[0-7])\b`), "", 0
	for s := bufio.NewScanner(f); s.Scan(); {
		line := s.Text()
		if rest, ok := strings.CutPrefix(line, "TEXT ·"); ok {
			name, _, _ = strings.Cut(rest, "(")
			functions++
		}
		if strings.HasSuffix(name, "AVX2") && later.MatchString(line) {
			t.Errorf("%s: %s", name, strings.TrimSpace(line))
		}
	}
	if functions < 50 {
		t.Errorf("found %d functions", functions)
	}
}
