package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"zeroshard/report"
	"zeroshard/report/dash"
	"zeroshard/train"
)

// followEvery is how often the metrics of a run that still goes are looked at.
const followEvery = 500 * time.Millisecond

func newDash() *cobra.Command {
	var dir, addr string
	c := &cobra.Command{
		Use:   "dash",
		Short: "Show a run in the browser",
		Long: "dash shows the run of a folder, from its metrics.jsonl: one that ended, or one that still goes, which it follows.\n" +
			"It serves until it is interrupted.",
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			sig := watch(io.Discard)
			defer sig.close()
			if dir == "" {
				return usagef("--run is needed: the folder of a run")
			}
			return showRun(c.OutOrStdout(), dir, addr, sig.stop)
		},
	}
	f := c.Flags()
	f.SortFlags = false
	c.SetHelpFunc(flagHelp)
	f.StringVar(&dir, "run", "", "run folder (`DIR`)")
	f.StringVar(&addr, "addr", "127.0.0.1:7777", "address (`ADDR`) to listen on; other than loopback, the page's address holds a token")
	return c
}

func showRun(out io.Writer, dir, addr string, stop <-chan struct{}) error {
	f, err := os.Open(filepath.Join(dir, report.MetricsFile))
	if err != nil {
		return fmt.Errorf("%w: %w", report.ErrRun, err)
	}
	defer f.Close()
	head, err := headOf(dir)
	if err != nil {
		return err
	}
	s, err := dash.New(head, nil)
	if err != nil {
		return err
	}
	follow := &follower{file: f, lines: report.NewReader(f), server: s, dir: dir}
	if err := follow.on(); err != nil {
		return err
	}
	url, err := s.Start(addr)
	if err != nil {
		return usagef("--addr %s: %v", addr, err)
	}
	fmt.Fprintf(out, "%s shows %s (Ctrl-C ends)\n", url, dir)
	return errors.Join(follow.until(stop), s.Close(""))
}

// headOf reads what the run is from its settings.
func headOf(dir string) (head dash.Run, err error) {
	raw, err := os.ReadFile(filepath.Join(dir, train.SettingsFile))
	if err != nil {
		return head, fmt.Errorf("%w: %w", report.ErrRun, err)
	}
	var set struct {
		Model  string `json:"model"`
		Ranks  int    `json:"ranks"`
		Stage  int    `json:"stage"`
		Steps  int    `json:"steps"`
		StopAt int    `json:"stop-at"`
		Limit  int64  `json:"device-memory"`
		Batch  int    `json:"global-batch"`
		Seq    int    `json:"seq"`

		Optimizer string  `json:"offload-optimizer"`
		Param     string  `json:"offload-param"`
		Ratio     float64 `json:"offload-ratio"`
	}
	if err := json.Unmarshal(raw, &set); err != nil {
		return head, fmt.Errorf("%w: %s: %w", report.ErrRun, filepath.Join(dir, train.SettingsFile), err)
	}
	if set.StopAt > 0 {
		set.Steps = min(set.Steps, set.StopAt)
	}
	head = dash.Run{Title: fmt.Sprintf("%s, stage %d, %d ranks", set.Model, set.Stage, set.Ranks), Ranks: set.Ranks, Steps: set.Steps, Limit: set.Limit,
		Facts: []report.Fact{{Name: "run", Value: dir}, {Name: "batch", Value: fmt.Sprintf("%d × %d tokens", set.Batch, set.Seq)}}}
	head.Facts = append(head.Facts, (&tiers{optimizer: set.Optimizer, param: set.Param, ratio: set.Ratio}).facts()...)
	return head, nil
}

// follower shows the metrics of a run as they grow.
type follower struct {
	file   *os.File
	lines  *report.Reader
	server *dash.Server
	dir    string
	end    report.Line // the last line, if it says that the run ended: a resumed run goes on behind it
	ended  bool        // and that was shown
	stale  bool        // it was shown that there are no news
	pace
}

// pace is the mean time of a run's steps.
type pace struct {
	ms    float64
	steps int
}

func (p *pace) add(ms report.Number) {
	if v := float64(ms); v > 0 && !math.IsInf(v, 1) {
		p.ms, p.steps = p.ms+v, p.steps+1
	}
}

// patience is how long a run that goes may say nothing.
func (p *pace) patience() time.Duration {
	mean := p.ms / float64(max(1, p.steps))
	return max(leastPatience, time.Duration(patientSteps*mean*float64(time.Millisecond)))
}

const (
	leastPatience = time.Minute
	patientSteps  = 20
	// settle is the time between a run's summary and its last line of metrics. Metrics of earlier versions have no such line.
	settle = 5 * time.Second
)

// on shows what is new.
func (f *follower) on() error {
	if f.ended {
		return nil
	}
	if err := f.read(); err != nil {
		return err
	}
	if f.end.Ended == "" && f.hasSummary() {
		f.end.Ended = report.EndedWell
	}
	if f.ended = f.end.Ended != ""; f.ended {
		return f.server.Show(f.end)
	}
	return f.doubt()
}

// read shows the lines that came, but for an end that comes last.
func (f *follower) read() error {
	for {
		l, err := f.lines.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", f.file.Name(), err)
		}
		f.end, f.stale = report.Line{}, false
		if l.Ended != "" {
			f.end = l
			continue
		}
		if l.Step != nil {
			f.pace.add(l.Step.StepMS)
		}
		if err := f.server.Show(l); err != nil {
			return err
		}
	}
}

// hasSummary reports whether the run has ended, by its summary.
func (f *follower) hasSummary() bool {
	info, err := os.Stat(filepath.Join(f.dir, train.SummaryFile))
	return err == nil && time.Since(info.ModTime()) > settle
}

// doubt says once of a run that told nothing for long that it may have been killed: whoever is killed writes no last line.
func (f *follower) doubt() error {
	info, err := f.file.Stat()
	if err != nil || f.stale || time.Since(info.ModTime()) < f.patience() {
		return err
	}
	f.stale = true
	return f.server.Stale(info.ModTime())
}

func (f *follower) until(stop <-chan struct{}) error {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return nil
		case <-tick.C:
			if err := f.on(); err != nil {
				return err
			}
		}
	}
}
