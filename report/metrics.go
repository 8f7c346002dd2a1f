package report

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// MetricsFile is the name of the metrics in a run folder: docs/format/metrics.md.
const MetricsFile = "metrics.jsonl"

// Step is a line of the metrics: what one step was and took.
type Step struct {
	Step       int      `json:"step"`
	Loss       Number   `json:"loss"` // mean over the tokens of the step, nats
	LR         Number   `json:"lr"`
	Norm       Number   `json:"norm"` // of the mean gradient, before clipping
	Tokens     int      `json:"tokens"`
	TokensPerS Number   `json:"tokens_per_s"`
	StepMS     Number   `json:"step_ms"`
	Skipped    string   `json:"skipped,omitempty"` // why no rank updated
	ValLoss    *Number  `json:"val_loss,omitempty"`
	Split      []Parts  `json:"split"`          // of step_ms, by rank
	Memory     []Memory `json:"memory"`         // by rank
	Resident   int64    `json:"resident_bytes"` // of the process, all ranks together
}

// Parts is a Split in milliseconds.
type Parts struct {
	ComputeMS Number `json:"compute_ms"`
	CommMS    Number `json:"comm_ms"`
	IOMS      Number `json:"io_ms"`
	WaitMS    Number `json:"wait_ms"`
}

func (s Split) parts() Parts {
	return Parts{Milliseconds(s.Compute), Milliseconds(s.Comm), Milliseconds(s.IO), Milliseconds(s.Wait)}
}

// Memory is one rank's device memory in one step, bytes.
type Memory struct {
	Used int64 `json:"used"` // reserved
	Peak int64 `json:"peak"` // of it, the most in use at once
}

// Validation is the line that follows a step's when its loss on held-out text is known.
type Validation struct {
	Step    int    `json:"step"`
	ValLoss Number `json:"val_loss"`
}

// Milliseconds is d as metrics write it, to the microsecond.
func Milliseconds(d time.Duration) Number { return Number(float64(d.Microseconds()) / 1e3) }

// Take fills in what the ranks' recorders say.
func (s *Step) Take(ranks []RankStep) {
	for _, r := range ranks {
		s.Memory = append(s.Memory, Memory{r.Used, r.Peak})
		s.Split = append(s.Split, r.Split.parts())
	}
}

// Metrics appends lines to a run's metrics. Each line is one write, so a reader sees whole lines, but for the last after a crash.
type Metrics struct{ f *os.File }

// OpenMetrics opens the metrics of a run folder, new ones or those of a run that goes on. A last line that a crash has torn is cut off.
func OpenMetrics(dir string) (*Metrics, error) {
	f, err := os.OpenFile(filepath.Join(dir, MetricsFile), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return nil, fmt.Errorf("report: metrics: %w", err)
	}
	if err := cutTail(f); err != nil {
		return nil, errors.Join(fmt.Errorf("report: metrics: %w", err), f.Close())
	}
	return &Metrics{f}, nil
}

// cutTail removes what follows the last newline.
func cutTail(f *os.File) error {
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	chunk := make([]byte, 64<<10)
	for at := end; at > 0; {
		n := min(int64(len(chunk)), at)
		if _, err := f.ReadAt(chunk[:n], at-n); err != nil {
			return err
		}
		if i := bytes.LastIndexByte(chunk[:n], '\n'); i >= 0 {
			return f.Truncate(at - n + int64(i) + 1)
		}
		at -= n
	}
	return f.Truncate(0)
}

// EndedWell is how a run ended that did what it was asked to.
const EndedWell = "ok"

// Line is a line of the metrics: a step, a validation, or the end.
type Line struct {
	Step       *Step
	Validation *Validation
	Ended      string // how the run ended: EndedWell, or in words; "" while it goes
}

// MarshalJSON writes whichever it is.
func (l Line) MarshalJSON() ([]byte, error) {
	switch {
	case l.Step != nil:
		return json.Marshal(l.Step)
	case l.Validation != nil:
		return json.Marshal(l.Validation)
	}
	return json.Marshal(map[string]string{"ended": l.Ended})
}

// UnmarshalJSON reads any: only a step has a loss, only the end has no step.
func (l *Line) UnmarshalJSON(text []byte) error {
	var s struct {
		Step
		Loss  *Number `json:"loss"`
		Ended string  `json:"ended"`
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return fmt.Errorf("%w: %w", ErrMetrics, err)
	}
	switch {
	case s.Ended != "" && s.Step.Step == 0:
		*l = Line{Ended: s.Ended}
	case s.Step.Step < 1:
		return fmt.Errorf("%w: a line without a step", ErrMetrics)
	case s.Loss != nil:
		s.Step.Loss = *s.Loss
		*l = Line{Step: &s.Step}
	case s.ValLoss != nil:
		*l = Line{Validation: &Validation{s.Step.Step, *s.ValLoss}}
	default:
		return fmt.Errorf("%w: a line with neither loss nor val_loss", ErrMetrics)
	}
	return nil
}

// Append writes a line.
func (m *Metrics) Append(l Line) error {
	text, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrMetrics, err)
	}
	if _, err := m.f.Write(append(text, '\n')); err != nil {
		return fmt.Errorf("report: metrics: %w", err)
	}
	return nil
}

// Close ends the file.
func (m *Metrics) Close() error {
	if err := errors.Join(m.f.Sync(), m.f.Close()); err != nil {
		return fmt.Errorf("report: metrics: %w", err)
	}
	return nil
}

// Reader reads metrics, also while they are still written: after io.EOF there may be more.
type Reader struct {
	r    io.Reader
	text []byte // read and not yet handed out
	line int
}

// NewReader reads metrics from r.
func NewReader(r io.Reader) *Reader { return &Reader{r: r} }

// Next returns the next whole line, or io.EOF where there is none yet: a last line without its end is being written, or was torn.
func (r *Reader) Next() (l Line, err error) {
	for {
		if n := bytes.IndexByte(r.text, '\n'); n >= 0 {
			raw := r.text[:n]
			r.text = r.text[n+1:]
			r.line++
			if len(bytes.TrimSpace(raw)) == 0 {
				continue
			}
			if err := json.Unmarshal(raw, &l); err != nil {
				return Line{}, fmt.Errorf("line %d: %w", r.line, asMetrics(err))
			}
			return l, nil
		}
		chunk := make([]byte, 64<<10)
		n, err := r.r.Read(chunk)
		r.text = append(r.text, chunk[:n]...)
		if n == 0 && err != nil {
			return Line{}, err
		}
	}
}

// asMetrics makes an error of encoding/json one of this package.
func asMetrics(err error) error {
	if errors.Is(err, ErrMetrics) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrMetrics, err)
}

// History is a run's steps in order, made of its lines.
type History []Step

// Add takes a line. A validation belongs to its step; a step that was done again after a resume takes the place of the first and
// of all that came after it. An end is no step, and a run that was resumed goes on behind it.
func (h *History) Add(l Line) {
	if l.Ended != "" {
		return
	}
	steps := *h
	if v := l.Validation; v != nil {
		if n := len(steps); n > 0 && steps[n-1].Step == v.Step {
			steps[n-1].ValLoss = &v.ValLoss
		}
		return
	}
	for len(steps) > 0 && steps[len(steps)-1].Step >= l.Step.Step {
		steps = steps[:len(steps)-1]
	}
	*h = append(steps, *l.Step)
}

// ReadMetrics reads the metrics of a run folder. A torn last line is left out.
func ReadMetrics(dir string) (History, error) {
	f, err := os.Open(filepath.Join(dir, MetricsFile))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRun, err)
	}
	defer f.Close()
	var h History
	for r := NewReader(f); ; {
		l, err := r.Next()
		if errors.Is(err, io.EOF) {
			return h, nil
		}
		if err != nil {
			return h, fmt.Errorf("%s: %w", f.Name(), err)
		}
		h.Add(l)
	}
}
