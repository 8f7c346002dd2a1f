package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"zeroshard/internal/golden"
)

func TestBenchHelp(t *testing.T) {
	for _, name := range []string{"", "kernels"} {
		got := execute(strings.Fields("bench " + name + " --help")...)
		if got.code != 0 || got.stderr != "" {
			t.Errorf("bench %s: code %d, stderr %q", name, got.code, got.stderr)
		}
		golden.Check(t, strings.TrimSuffix("testdata/help-bench-"+name, "-")+".txt", got.stdout)
	}
}

// Scripts read these fields, and no others.
func TestBenchJSON(t *testing.T) {
	got := execute("bench", "kernels", "--json", "--threads", "1", "--time", "1ns", "--filter", "^(layernorm|attention T 256)")
	if got.code != 0 {
		t.Fatal(got.stderr)
	}
	lines := strings.Split(strings.TrimSpace(got.stdout), "\n")
	if len(lines) != 3 {
		t.Fatalf("%d rows, want attention, layernorm and its backward:\n%s", len(lines), got.stdout)
	}
	for _, line := range lines {
		var row map[string]any
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		var fields []string
		for name := range row {
			fields = append(fields, name)
		}
		slices.Sort(fields)
		if want := []string{"limit", "name", "of_limit", "shape", "threads", "unit", "value"}; !slices.Equal(fields, want) {
			t.Errorf("fields %q, want %q", fields, want)
		}
	}
}

func TestBenchTable(t *testing.T) {
	got := execute("bench", "collectives", "--time", "1ns", "--filter", "^all-gather 1 MiB")
	lines := strings.Split(strings.TrimSpace(got.stdout), "\n")
	if got.code != 0 || len(lines) != 2 || !strings.HasPrefix(lines[1], "all-gather ") || !strings.HasSuffix(lines[1], "GB/s") {
		t.Errorf("%+v", got)
	}
}

func TestBenchRefuses(t *testing.T) {
	for _, c := range []struct {
		args, want string
	}{
		{"bench kernels --threads -1", "--threads -1: use 1 or more"},
		{"bench kernels --time 0s", "--time 0s: use more than 0"},
		{"bench kernels --filter (", `--filter "(" is no regular expression`},
		{"bench kernels all", `unexpected argument "all"`},
		{"bench kernel", `unknown command "kernel": did you mean kernels?`},
	} {
		got := execute(strings.Fields(c.args)...)
		if got.code != exitUsage || !strings.Contains(got.stderr, c.want) || got.stdout != "" {
			t.Errorf("%s: %+v, want %q", c.args, got, c.want)
		}
	}
}

func TestFigure(t *testing.T) {
	for v, want := range map[float64]string{0.5: "0.5000", 1: "1.000", 98.76: "98.76", 1234.5: "1234", 1234567: "1234567"} {
		if got := figure(v); got != want {
			t.Errorf("%v prints as %s, want %s", v, got, want)
		}
	}
}
