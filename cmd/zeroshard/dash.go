package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
		Long: "dash shows the run of a folder, from its metrics.jsonl: a finished one, or one that still goes, which it follows.\n" +
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
	follow := &follower{lines: report.NewReader(f), server: s, dir: dir}
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
	}
	if err := json.Unmarshal(raw, &set); err != nil {
		return head, fmt.Errorf("%w: %s: %w", report.ErrRun, filepath.Join(dir, train.SettingsFile), err)
	}
	if set.StopAt > 0 {
		set.Steps = min(set.Steps, set.StopAt)
	}
	head = dash.Run{Title: fmt.Sprintf("%s, stage %d, %d ranks", set.Model, set.Stage, set.Ranks), Ranks: set.Ranks, Steps: set.Steps, Limit: set.Limit,
		Facts: []report.Fact{{Name: "run", Value: dir}, {Name: "batch", Value: fmt.Sprintf("%d × %d tokens", set.Batch, set.Seq)}}}
	return head, nil
}

// follower shows the metrics of a run as they grow.
type follower struct {
	lines  *report.Reader
	server *dash.Server
	dir    string
	ended  bool
}

// on shows what is new. A run that has its summary has ended.
func (f *follower) on() error {
	if f.ended {
		return nil
	}
	_, ended := os.Stat(filepath.Join(f.dir, train.SummaryFile))
	for {
		l, err := f.lines.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("%s: %w", filepath.Join(f.dir, report.MetricsFile), err)
		}
		if err := f.server.Show(l); err != nil {
			return err
		}
	}
	if f.ended = ended == nil; f.ended {
		return f.server.Finish("")
	}
	return nil
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
