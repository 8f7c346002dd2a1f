package train

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"zeroshard/memory"
)

const (
	lineEvery   = 5 * time.Second       // of training, between two lines of a log
	redrawEvery = 50 * time.Millisecond // between two pictures of the terminal's line
)

// Progress tells a person how the run goes: on a terminal one line that is rewritten, elsewhere a plain line for the first and
// last step and every few seconds between. Validation losses and skipped steps always get a line of their own. It has no
// clock: times are those of the events.
type Progress struct {
	w        io.Writer
	terminal bool
	width    func() int
	usage    func() (used, planned int64) // of the fullest rank
	saved    func() int                   // the newest committed step, 0 for none

	elapsed, shown time.Duration // of training; and when the last step was shown
	since          span          // what happened since then
	drawn          bool          // the terminal's line holds a step
}

type span struct {
	steps, tokens int
	took          time.Duration
}

// NewProgress writes to w, which is treated as a terminal if it is one.
func NewProgress(w io.Writer, usage func() (used, planned int64)) *Progress {
	p := &Progress{w: w, usage: usage}
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		p.terminal = true
		p.width = func() int {
			if n, _, err := term.GetSize(int(f.Fd())); err == nil && n > 0 {
				return n
			}
			return 80
		}
	}
	return p
}

// Saves lets the line show the newest committed step, 0 for none.
func (p *Progress) Saves(newest func() int) { p.saved = newest }

// Report takes one event of the run, as Settings.Report wants it.
func (p *Progress) Report(e Event) {
	if e.Validation {
		p.line(fmt.Sprintf("%s  validation loss %.4f", stepOf(e), e.Loss))
		return
	}
	p.elapsed += e.Took
	p.since.steps++
	p.since.tokens += e.Tokens
	p.since.took += e.Took
	if e.Skipped != nil {
		p.line(fmt.Sprintf("%s  skipped: %s", stepOf(e), skipText(e.Skipped)))
	}
	wait := lineEvery
	if p.terminal {
		wait = redrawEvery
	}
	if e.Step > 1 && !e.Last && p.elapsed-p.shown < wait {
		return
	}
	p.draw(p.text(e), e.Last)
	p.shown, p.since = p.elapsed, span{}
}

// text is the line of a step. Rate and step time are means since the last line.
func (p *Progress) text(e Event) string {
	used, planned := p.usage()
	took := p.since.took / time.Duration(p.since.steps)
	s := fmt.Sprintf("%s  loss %.4f  lr %.2e  norm %.2f  %s tok/s  %s/step  memory %s of %s",
		stepOf(e), e.Loss, e.LR, e.Norm, rate(p.since.tokens, p.since.took), short(took), memory.FormatBytes(used), memory.FormatBytes(planned))
	if p.saved != nil && p.saved() > 0 {
		s += fmt.Sprintf("  saved %d", p.saved())
	}
	if !e.Last {
		s += "  left " + short(e.Left)
	}
	return s
}

func (p *Progress) draw(s string, last bool) {
	if !p.terminal {
		fmt.Fprintln(p.w, s)
		return
	}
	if n := p.width() - 1; len(s) > n {
		s = s[:max(n, 0)]
	}
	fmt.Fprint(p.w, "\r\x1b[K", s)
	p.drawn = !last
	if last {
		fmt.Fprintln(p.w)
	}
}

// line writes a line that stays, above the one that is rewritten.
func (p *Progress) line(s string) {
	if p.drawn {
		fmt.Fprint(p.w, "\r\x1b[K")
		p.drawn = false
	}
	fmt.Fprintln(p.w, s)
}

// Close ends a line that was left half-way, as an error leaves it.
func (p *Progress) Close() {
	if p.drawn {
		fmt.Fprintln(p.w)
		p.drawn = false
	}
}

func stepOf(e Event) string {
	total := fmt.Sprint(e.Steps)
	return fmt.Sprintf("step %*d/%s", len(total), e.Step, total)
}

func rate(tokens int, took time.Duration) string {
	if took <= 0 {
		return "-"
	}
	return Thousands(int64(float64(tokens) / took.Seconds()))
}

// short is a duration with two or three figures: 850µs, 82ms, 1.24s, 3m05s, 2h07m.
func short(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(10 * time.Millisecond).String()
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	default:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
}

// Thousands writes n with commas: 1,234,567.
func Thousands(n int64) string {
	s := fmt.Sprint(n)
	sign := ""
	if n < 0 {
		sign, s = "-", s[1:]
	}
	var b strings.Builder
	for i, c := range s {
		if i > 0 && (len(s)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(c)
	}
	return sign + b.String()
}
