package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/spf13/pflag"

	"zeroshard"
	"zeroshard/memory"
	"zeroshard/report"
	"zeroshard/report/dash"
	"zeroshard/train"
	"zeroshard/zero"
)

// reportedSteps is how many of the last steps a memory report shows.
const reportedSteps = 3

// audience is who looks on while a run trains: its metrics, the memory report, the live page.
type audience struct {
	reportDir, address string // flags: empty for none

	about   report.Subject
	book    *report.Book
	metrics *report.Metrics
	live    *dash.Server
	url     string         // of the live page
	process report.Process // when it was looked at last, and the training time since
	unseen  time.Duration
	failed  error // the first failure to tell somebody: it does not end the run
}

func (a *audience) flags(f *pflag.FlagSet) {
	f.StringVar(&a.reportDir, "memory-report", "", "write a page, JSON and a trace of the last steps' memory and times into `DIR`."+unchanged)
	f.StringVar(&a.address, "dash", "", "show the run live at `ADDR`, as 127.0.0.1:7777; other than loopback, the page's address holds a token."+unchanged)
}

func (a *audience) judge(f *faults) {
	if a.address != "" {
		_, _, err := net.SplitHostPort(a.address)
		f.check(err == nil, "--dash %q: want host:port, as 127.0.0.1:7777", a.address)
	}
}

// meet opens the book and the live page, before the ranks are made: they are told who watches.
func (a *audience) meet(r *run) ([]zeroshard.Option, error) {
	keep := 1
	if a.reportDir != "" {
		keep = reportedSteps
		if err := reportable(a.reportDir); err != nil {
			return nil, fmt.Errorf("--memory-report: %w", err)
		}
	}
	a.book = report.NewBook(r.program, r.model, keep, report.Since(time.Now()))
	a.about = subject(r)
	if a.address != "" {
		if err := a.goLive(r); err != nil {
			return nil, err
		}
	}
	return []zeroshard.Option{
		zeroshard.WithWatcher(func(rank int) zero.Watcher { return a.book.Rank(rank) }),
		zeroshard.WithObservers(func(rank int) []memory.Observer { return []memory.Observer{a.book.Rank(rank)} }),
	}, nil
}

// reportable makes the folder of a memory report.
func reportable(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return train.Writable(report.PagePath(dir))
}

func (a *audience) goLive(r *run) (err error) {
	a.live, err = dash.New(dash.Run{Title: a.about.Title, Facts: a.about.Facts, Ranks: a.book.Ranks(), Steps: r.learning.end(),
		Planned: r.program.Cost().Peak(), Limit: a.about.Limit}, a.positions)
	if err != nil {
		return err
	}
	a.url, err = a.live.Start(a.address)
	if err != nil {
		a.live = nil
		return usagef("--dash %s: %v", a.address, err)
	}
	return nil
}

// subject is the head of a run's reports.
func subject(r *run) report.Subject {
	j := &r.job
	about := report.Subject{Title: fmt.Sprintf("%s, stage %d, %d ranks", j.model, j.stage, j.ranks), Limit: int64(j.deviceMemory), Facts: []report.Fact{
		{Name: "model", Value: fmt.Sprintf("%s (%s parameters)", j.model, train.Thousands(int64(r.model.Params())))},
		{Name: "ranks", Value: fmt.Sprint(j.ranks)}, {Name: "stage", Value: fmt.Sprintf("%d (%s)", j.stage, stageWords[j.stage])},
		{Name: "batch", Value: fmt.Sprintf("%d × %d tokens in %d micro-batches", j.globalBatch, j.seq, j.globalBatch/j.microBatch)},
		{Name: "prefetch", Value: fmt.Sprint(j.prefetch)}, {Name: "recompute", Value: j.recompute.String()},
	}}
	about.Facts = append(about.Facts, j.tiers.facts()...)
	return about
}

// begin opens the metrics in the run's folder, and says where the live page is.
func (a *audience) begin(r *run) (err error) {
	a.about.Facts = append(a.about.Facts, report.Fact{Name: "run", Value: string(r.folder)})
	if a.metrics, err = report.OpenMetrics(string(r.folder)); err != nil {
		return err
	}
	if a.live != nil {
		fmt.Fprintf(r.stderr, "live       %s\n", a.url)
	}
	return nil
}

func (a *audience) positions() []report.Position {
	out := make([]report.Position, a.book.Ranks())
	for r := range out {
		out[r] = a.book.Rank(r).Position()
	}
	return out
}

// hear takes an event of the run.
func (a *audience) hear(e train.Event) {
	if e.Validation {
		a.tell(report.Line{Validation: &report.Validation{Step: e.Step, ValLoss: report.Number(e.Loss)}})
		return
	}
	s := report.Step{Step: e.Step, Loss: report.Number(e.Loss), LR: report.Number(e.LR), Norm: report.Number(e.Norm), Tokens: e.Tokens,
		TokensPerS: report.Number(float64(e.Tokens) / e.Took.Seconds()), StepMS: report.Milliseconds(e.Took),
		Resident: report.Resident(os.DirFS("/"), os.Getpagesize())}
	if e.Skipped != nil {
		s.Skipped = fmt.Sprintf("%s (rank %d, parameter %s)", e.Skipped.What, e.Skipped.Rank, e.Skipped.Param)
	}
	s.Take(a.book.EndStep(e.Step, e.Took))
	a.look(e)
	a.tell(report.Line{Step: &s})
}

// lookEvery is the training time between two looks at the whole process, which take longer than one step should pay.
const lookEvery = time.Second

// look keeps what the process holds while it trains: what comes after (state that is hashed, a sample) is no part of a step.
func (a *audience) look(e train.Event) {
	if a.unseen += e.Took; a.reportDir != "" && (e.Last || a.process.Resident == 0 || a.unseen >= lookEvery) {
		a.process, a.unseen = report.ReadProcess(os.DirFS("/")), 0
	}
}

func (a *audience) tell(l report.Line) {
	a.keep(a.metrics.Append(l))
	if a.live != nil {
		a.keep(a.live.Show(l))
	}
}

func (a *audience) keep(err error) {
	if a.failed == nil {
		a.failed = err
	}
}

// end writes the report, also of a run that failed, and closes what begin opened.
func (a *audience) end(r *run, cause error) error {
	errs := []error{cause, a.failed}
	how := ending(errors.Join(errs...))
	if a.metrics != nil {
		errs = append(errs, a.metrics.Append(report.Line{Ended: how}), a.metrics.Close())
	}
	if a.reportDir != "" && r.cluster != nil {
		for _, m := range r.cluster.Memory() {
			a.about.Used = append(a.about.Used, report.Peaks{Planned: m.Planned, Used: m.Used, PlannedBy: m.PlannedBy, UsedBy: m.UsedBy})
		}
		errs = append(errs, a.book.WriteDir(a.reportDir, a.about, a.process))
	}
	if a.live != nil {
		errs = append(errs, a.live.Show(report.Line{Ended: how}), a.live.Close(""))
	}
	return errors.Join(errs...)
}

// ending is how a run ended, as its metrics say it.
func ending(err error) string {
	var stopped *signalError
	var saved *savedError
	switch {
	case err == nil:
		return report.EndedWell
	case errors.As(err, &saved):
		return fmt.Sprintf("%v; step %d is saved", saved.signal, saved.step)
	case errors.As(err, &stopped):
		return stopped.Error()
	}
	return "failed: " + err.Error()
}
