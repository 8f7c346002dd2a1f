package train

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	"zeroshard/zero"
)

func steps(n int, took time.Duration) []Event {
	var out []Event
	for i := 1; i <= n; i++ {
		out = append(out, Event{Step: i, Steps: n, Loss: 5.5 - float64(i)/10, LR: 1e-3, Norm: 0.5, Tokens: 1024, Took: took,
			Left: took * time.Duration(n-i), Last: i == n})
	}
	return out
}

func usage() (int64, int64) { return 3 << 20, 4 << 20 }

func TestPlainLinesComeEveryFewSeconds(t *testing.T) {
	var out bytes.Buffer
	p := NewProgress(&out, usage)
	for _, e := range steps(12, time.Second) {
		p.Report(e)
	}
	p.Close()
	want := strings.Join([]string{
		"step  1/12  loss 5.4000  lr 1.00e-03  norm 0.50  1,024 tok/s  1s/step  memory 3 MiB of 4 MiB  left 11s",
		"step  6/12  loss 4.9000  lr 1.00e-03  norm 0.50  1,024 tok/s  1s/step  memory 3 MiB of 4 MiB  left 6s",
		"step 11/12  loss 4.4000  lr 1.00e-03  norm 0.50  1,024 tok/s  1s/step  memory 3 MiB of 4 MiB  left 1s",
		"step 12/12  loss 4.3000  lr 1.00e-03  norm 0.50  1,024 tok/s  1s/step  memory 3 MiB of 4 MiB",
		"",
	}, "\n")
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

func TestTerminalRewritesOneLine(t *testing.T) {
	var out bytes.Buffer
	p := &Progress{w: &out, usage: usage, terminal: true, width: func() int { return 21 }}
	ev := steps(3, time.Second)
	p.Report(ev[0])
	p.Report(Event{Step: 1, Steps: 3, Loss: 2.5, Validation: true})
	p.Report(ev[1])
	p.Report(ev[2])
	p.Close()
	clear := "\r\x1b[K"
	want := clear + "step 1/3  loss 5.400" + clear + "step 1/3  validation loss 2.5000\n" +
		clear + "step 2/3  loss 5.300" + clear + "step 3/3  loss 5.200\n"
	if out.String() != want {
		t.Errorf("got  %q\nwant %q", out.String(), want)
	}
}

func TestTerminalIsNotRedrawnTooOften(t *testing.T) {
	var out bytes.Buffer
	p := &Progress{w: &out, usage: usage, terminal: true, width: func() int { return 200 }}
	for _, e := range steps(100, time.Millisecond) {
		p.Report(e)
	}
	if n := strings.Count(out.String(), "\r"); n != 3 { // steps 1, 51 and 100
		t.Errorf("drawn %d times, want 3", n)
	}
}

func TestCloseEndsAnOpenLine(t *testing.T) {
	var out bytes.Buffer
	p := &Progress{w: &out, usage: usage, terminal: true, width: func() int { return 12 }}
	p.Report(steps(3, time.Second)[0])
	p.Close()
	p.Close()
	if !strings.HasSuffix(out.String(), "step 1/3  l\n") {
		t.Errorf("%q", out.String())
	}
}

func TestSkippedStepIsAlwaysTold(t *testing.T) {
	var out bytes.Buffer
	p := NewProgress(&out, usage)
	ev := steps(5, time.Millisecond)
	ev[2].Skipped, ev[2].Norm = &zero.Skip{Rank: 1, Param: "wte.weight", Line: "25 norm", What: "a gradient is NaN"}, math.NaN()
	for _, e := range ev {
		p.Report(e)
	}
	if !strings.Contains(out.String(), "step 3/5  skipped: a gradient is NaN (rank 1, parameter wte.weight, plan line 25 norm)\n") {
		t.Errorf("the skip of step 3 is missing:\n%s", out.String())
	}
}

func TestFigures(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{Thousands(0), "0"}, {Thousands(999), "999"}, {Thousands(1000), "1,000"}, {Thousands(-1234567), "-1,234,567"},
		{short(0), "0s"}, {short(853 * time.Microsecond), "850µs"}, {short(82300 * time.Microsecond), "82ms"},
		{short(1234 * time.Millisecond), "1.23s"}, {short(185 * time.Second), "3m05s"}, {short(2*time.Hour + 7*time.Minute), "2h07m"},
		{rate(10, 0), "-"}, {rate(2500, time.Second), "2,500"},
	} {
		if c.got != c.want {
			t.Errorf("%q, want %q", c.got, c.want)
		}
	}
}
