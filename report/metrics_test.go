package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"zeroshard/internal/golden"
)

func line(step int, loss float64) Line {
	s := Step{Step: step, Loss: Number(loss), LR: 1e-3, Norm: Number(math.Inf(1)), Tokens: 1024, TokensPerS: 4096, StepMS: 250, Resident: 5 << 20}
	s.Take([]RankStep{{Used: 2048, Peak: 2000, Split: Split{Compute: 200 * time.Millisecond, Comm: 30 * time.Millisecond, IO: 500 * time.Microsecond, Wait: 19500 * time.Microsecond}}})
	return Line{Step: &s}
}

func validation(step int, loss float64) Line {
	return Line{Validation: &Validation{step, Number(loss)}}
}

func TestMetricsGolden(t *testing.T) {
	dir := t.TempDir()
	m, err := OpenMetrics(dir)
	if err != nil {
		t.Fatal(err)
	}
	skipped := line(2, math.NaN())
	skipped.Step.Skipped = "a gradient is NaN (rank 1, parameter wte.weight)"
	for _, l := range []Line{line(1, 4.5), skipped, validation(2, 4.25), {Ended: "failed: \"disk\" <full>"}} {
		if err := m.Append(l); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(dir, MetricsFile))
	if err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "testdata/metrics.jsonl", string(raw))
	h, err := ReadMetrics(dir)
	if err != nil || len(h) != 2 {
		t.Fatalf("%d steps, %v", len(h), err)
	}
	if h[0].Loss != 4.5 || !math.IsInf(float64(h[0].Norm), 1) || h[0].ValLoss != nil || h[0].Memory[0].Used != 2048 || h[0].Split[0].IOMS != 0.5 {
		t.Errorf("first step %+v", h[0])
	}
	if !math.IsNaN(float64(h[1].Loss)) || h[1].ValLoss == nil || *h[1].ValLoss != 4.25 || h[1].Skipped == "" {
		t.Errorf("second step %+v", h[1])
	}
}

// A crash tears the last line at any byte: what was whole is read, and a run that goes on writes after it.
func TestMetricsTornAnywhere(t *testing.T) {
	var whole bytes.Buffer
	for _, l := range []Line{line(1, 3), validation(1, 2.5), line(2, 2)} {
		raw, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		whole.Write(append(raw, '\n'))
	}
	for cut := 0; cut <= whole.Len(); cut += 13 - cut%2 { // not each: a file is synced to disk when it is closed
		dir := t.TempDir()
		path := filepath.Join(dir, MetricsFile)
		if err := os.WriteFile(path, whole.Bytes()[:cut], 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadMetrics(dir); err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		m, err := OpenMetrics(dir)
		if err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
		}
		if err := errors.Join(m.Append(line(3, 1)), m.Close()); err != nil {
			t.Fatal(err)
		}
		h, err := ReadMetrics(dir)
		want := 1 + bytes.Count(whole.Bytes()[:cut], []byte(`"lr"`)) - boolInt(cut < whole.Len() && torn(whole.Bytes()[:cut]))
		if err != nil || len(h) != want || h[len(h)-1].Step != 3 {
			t.Fatalf("cut at %d: %d steps, want %d (%v)", cut, len(h), want, err)
		}
	}
}

// torn reports whether text ends within a step's line, behind its learning rate.
func torn(text []byte) bool {
	return bytes.Contains(text[bytes.LastIndexByte(text, '\n')+1:], []byte(`"lr"`))
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// A tail longer than what is looked at in one go.
func TestMetricsLongTornLine(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, MetricsFile)
	if err := os.WriteFile(path, []byte("{\"step\":1,\"loss\":2}\n"+strings.Repeat("x", 200<<10)), 0o644); err != nil {
		t.Fatal(err)
	}
	m, err := OpenMetrics(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if raw, err := os.ReadFile(path); err != nil || string(raw) != "{\"step\":1,\"loss\":2}\n" {
		t.Errorf("%d bytes left, %v", len(raw), err)
	}
}

func TestHistory(t *testing.T) {
	for _, c := range []struct {
		name  string
		lines []Line
		want  []float64
	}{
		{"in order", []Line{line(1, 10), line(2, 20)}, []float64{10, 20}},
		{"resumed", []Line{line(1, 10), line(2, 20), line(3, 30), line(2, 21), line(3, 31)}, []float64{10, 21, 31}},
		{"resumed further back", []Line{line(1, 10), line(2, 20), line(3, 30), line(2, 21)}, []float64{10, 21}},
		{"resumed after an end", []Line{line(1, 10), {Ended: "stopped by interrupt"}, line(2, 20), {Ended: EndedWell}}, []float64{10, 20}},
		{"a validation of no step", []Line{validation(7, 1), line(1, 10), validation(9, 1)}, []float64{10}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var h History
			for _, l := range c.lines {
				h.Add(l)
			}
			if len(h) != len(c.want) {
				t.Fatalf("%d steps, want %d", len(h), len(c.want))
			}
			for i := range h {
				if float64(h[i].Loss) != c.want[i] || h[i].ValLoss != nil {
					t.Errorf("step %d: %+v", i, h[i])
				}
			}
		})
	}
}

func TestReaderRefuses(t *testing.T) {
	for _, c := range []struct{ name, text, says string }{
		{"no JSON", "{\"step\":1,\"loss\":1}\n<html>\n", "line 2"},
		{"a bad number", "{\"step\":1,\"loss\":\"big\"}\n", "big"},
		{"no step", "{\"loss\":1}\n", "without a step"},
		{"an end that says nothing", "{\"ended\":\"\"}\n", "without a step"},
		{"nothing of interest", "{\"step\":4}\n", "neither"},
		{"a list", "[1]\n", "line 1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := NewReader(strings.NewReader(c.text))
			var err error
			for err == nil {
				_, err = r.Next()
			}
			if !errors.Is(err, ErrMetrics) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v, want ErrMetrics that says %q", err, c.says)
			}
		})
	}
}

// growing gives text bit by bit, with io.EOF between the bits, as a file that is still written does.
type growing struct{ bits []string }

func (g *growing) Read(p []byte) (int, error) {
	if len(g.bits) == 0 {
		return 0, io.EOF
	}
	bit := g.bits[0]
	g.bits = g.bits[1:]
	if bit == "" {
		return 0, io.EOF
	}
	return copy(p, bit), nil
}

func TestReaderFollows(t *testing.T) {
	r := NewReader(&growing{[]string{"{\"step\":1,", "", "\"loss\":2}\n{\"step\"", "", ":2,\"loss\":3}\n"}})
	var got []string
	for range 5 {
		l, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			got = append(got, "wait")
		case err != nil:
			t.Fatal(err)
		default:
			got = append(got, string(rune('0'+l.Step.Step)))
		}
	}
	if s := strings.Join(got, " "); s != "wait 1 wait 2 wait" {
		t.Errorf("%s", s)
	}
}

func TestNoMetrics(t *testing.T) {
	if _, err := ReadMetrics(t.TempDir()); !errors.Is(err, ErrRun) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

func TestNumber(t *testing.T) {
	for _, f := range []float64{0, math.Copysign(0, -1), 1, -2.5, 1e-300, 1e300, math.MaxFloat64, math.SmallestNonzeroFloat64, math.Pi, math.NaN(), math.Inf(1), math.Inf(-1)} {
		raw, err := json.Marshal(Number(f))
		if err != nil {
			t.Fatal(err)
		}
		var got Number
		if err := json.Unmarshal(raw, &got); err != nil {
			t.Errorf("%s: %v", raw, err)
		}
		if math.Float64bits(float64(got)) != math.Float64bits(f) && !(math.IsNaN(f) && math.IsNaN(float64(got))) {
			t.Errorf("%v is %s, which is %v", f, raw, got)
		}
	}
	var n Number
	if err := json.Unmarshal([]byte("null"), &n); err != nil {
		t.Error(err)
	}
	if err := json.Unmarshal([]byte(`"nan"`), &n); !errors.Is(err, ErrMetrics) {
		t.Errorf("%v", err)
	}
}

// Whatever a file holds, it is read or refused; what is read, is written and read back alike.
func FuzzReader(f *testing.F) {
	f.Add([]byte("{\"step\":1,\"loss\":\"NaN\",\"lr\":1e-3}\n{\"step\":1,\"val_loss\":2}\n"))
	f.Add([]byte("{\"ended\":\"ok\"}\n{\"ended\":\"failed: \\u0000\",\"step\":0}\n"))
	f.Add([]byte("\n\n{\"step\":2,\"loss\":null}\n{"))
	f.Add([]byte("{\"step\":-1,\"loss\":1}\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		r := NewReader(bytes.NewReader(text))
		for {
			l, err := r.Next()
			if err != nil {
				if !errors.Is(err, io.EOF) && !errors.Is(err, ErrMetrics) {
					t.Fatal(err)
				}
				return
			}
			raw, err := json.Marshal(l)
			if err != nil {
				t.Fatal(err)
			}
			var again Line
			if err := json.Unmarshal(raw, &again); err != nil {
				t.Fatalf("%s: %v", raw, err)
			}
			twice, err := json.Marshal(again)
			if err != nil || !bytes.Equal(raw, twice) {
				t.Fatalf("%s, then %s (%v)", raw, twice, err)
			}
		}
	})
}
