package main

import (
	"bytes"
	"regexp"
	"strconv"
	"testing"
)

func TestRun(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), &out, 20); err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`validation loss (\S+), with a liking for e (\S+), without it again (\S+)\n`).FindStringSubmatch(out.String())
	if m == nil {
		t.Fatalf("no validation loss in\n%s", &out)
	}
	before, _ := strconv.ParseFloat(m[1], 64)
	with, _ := strconv.ParseFloat(m[2], 64)
	if before > 4 || before < 1 {
		t.Errorf("validation loss %v after 20 steps, want it well under ln 256 = 5.5", before)
	}
	if with < before+0.1 {
		t.Errorf("a liking for e costs nothing: %v, before %v: was it set?", with, before)
	}
	if m[1] != m[3] {
		t.Errorf("setting back what was read gives %s, not %s", m[3], m[1])
	}
	used := regexp.MustCompile(`planned (\d+) bytes, used (\d+)`).FindAllStringSubmatch(out.String(), -1)
	if len(used) != 2 {
		t.Fatalf("memory of %d ranks, want 2:\n%s", len(used), &out)
	}
	for r, u := range used {
		if u[1] != u[2] {
			t.Errorf("rank %d: planned %s bytes, used %s", r, u[1], u[2])
		}
	}
}
