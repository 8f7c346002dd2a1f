package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"zeroshard"
	"zeroshard/data"
	"zeroshard/models/gpt"
	"zeroshard/train"
	"zeroshard/zero"
)

const (
	// defaultSteps learns English from the default corpus (validation loss under 2.7) in about two minutes on two cores.
	defaultSteps = 1200
	// heldOut is the sequences of one validation loss.
	heldOut = 64
	// maxSkips steps in a row without an update end a run: something is broken, and more steps only cost time.
	maxSkips = 10
)

// run is one training run: what was asked, and what was made of it, from flags to cluster.
type run struct {
	job      job
	learning learning
	output   output
	saves    saves

	model   *gpt.Model
	cfg     zeroshard.Config
	program *zero.Program
	corpus  *data.Set
	folder  train.Folder
	cluster *zeroshard.Cluster
	wire    zero.Traffic // of the last step
	streams
}

// streams are where results, progress, and what nobody should miss go: --quiet silences the first two.
type streams struct{ stdout, stderr, warnings io.Writer }

func newTrain() *cobra.Command {
	r := &run{}
	c := &cobra.Command{
		Use:   "train",
		Short: "Train a model on the ranks of this process",
		Long: "train trains a GPT on the ranks of this process, prints what it will do and cost, how it goes, what memory was planned and used,\n" +
			"and a text that the model writes. A flag whose help ends in \"Bits: unchanged\" never changes a bit of the trained state.",
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			r.stdout, r.stderr, r.warnings = c.OutOrStdout(), c.ErrOrStderr(), c.ErrOrStderr()
			if r.output.quiet {
				r.stdout, r.stderr = io.Discard, io.Discard
			}
			sig := watch(r.stderr)
			defer sig.close()
			defer func() { r.saves.init.shut() }()
			if err := r.judge(c); err != nil {
				return err
			}
			return r.main(context.Background(), sig)
		},
	}
	f := c.Flags()
	f.SortFlags = false
	c.SetHelpFunc(flagHelp)
	r.job.flags(f)
	r.learning.flags(f)
	r.saves.flags(f)
	r.output.flags(f)
	return c
}

// judge refuses what cannot run, as far as flags tell, and compiles the plan.
func (r *run) judge(c *cobra.Command) error {
	var f faults
	known, err := r.begins(c.Flags(), &f)
	if err != nil {
		return err
	}
	shape := r.job.resolve(c.Flags(), known, &f)
	r.learning.judge(&r.job, c.Flags(), &f)
	r.output.judge(&f)
	if err := f.err(); err != nil {
		return err
	}
	if r.saves.given, err = given(c.Flags()); err != nil {
		return err
	}
	if r.model, err = gpt.New(shape); err != nil {
		return err
	}
	r.cfg = r.job.config(r.model, r.learning.optimizer(&r.job))
	r.cfg.Seed = r.learning.seed
	if r.program, err = zeroshard.Plan(r.cfg); err != nil {
		return err
	}
	return zeroshard.CheckFit(r.cfg, r.program)
}

// begins finds what the run starts from, and with it settings that were not given and the model's shape.
func (r *run) begins(set *pflag.FlagSet, f *faults) (*gpt.Config, error) {
	if r.saves.judge(&r.output, set, f); f.err() != nil {
		return nil, f.err()
	}
	if err := r.findSaved(); err != nil {
		return nil, err
	}
	if err := r.inherit(set); err != nil {
		return nil, err
	}
	return r.shape(set)
}

// main is the run after its flags. Nothing is written before all that can be refused has been.
func (r *run) main(ctx context.Context, sig *signals) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	if err := r.open(ctx); err != nil {
		cancel()
		return err
	}
	defer r.closeCorpus(cancel)
	watching, err := r.output.audience.meet(r)
	if err != nil {
		return err
	}
	if r.cluster, err = zeroshard.Local(ctx, r.cfg, watching...); err != nil {
		return r.output.audience.end(r, err)
	}
	defer r.cluster.Close()
	defer func() { err = r.output.audience.end(r, err) }()
	if err := r.load(ctx); err != nil {
		return err
	}
	lock, err := r.createFolder(time.Now())
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := r.openStore(); err != nil {
		return err
	}
	if err := r.output.audience.begin(r); err != nil {
		return err
	}
	r.announce()
	res, err := r.train(ctx, sig)
	if err = errors.Join(err, r.closeSaves()); err != nil {
		return err
	}
	sum, err := r.summary(ctx, res)
	if err != nil {
		return err
	}
	printMemory(r.stdout, sum.Memory)
	if err := r.sample(ctx, sig.stop); err != nil {
		return err
	}
	if err := r.folder.Finish(sum); err != nil {
		return err
	}
	if r.output.summary != "" {
		if err := train.WriteJSON(r.output.summary, sum); err != nil {
			return err
		}
	}
	return r.ended(sig, res)
}

// load sets the state that the run starts from, where it is not the model's own.
func (r *run) load(ctx context.Context) error {
	s := &r.saves
	if s.init != nil {
		err := r.cluster.Load(ctx, s.init.read)
		return errors.Join(err, s.init.shut())
	}
	if s.from == nil {
		return nil
	}
	saved, err := r.savedIn().Open(s.from.Step)
	if err == nil {
		err = errors.Join(r.cluster.Restore(ctx, saved), saved.Close())
	}
	return r.olderStep(err, s.from.Step)
}

// open finds the data and the places to write to.
func (r *run) open(ctx context.Context) (err error) {
	paths := r.learning.data
	if len(paths) == 0 {
		path, err := data.DefaultPath()
		if err != nil {
			return err
		}
		paths = []string{path}
		r.learning.data = paths
	}
	inRun := r.output.out != "" && filepath.Dir(r.output.summary) == filepath.Clean(r.output.out) // that folder is made later
	if r.output.summary != "" && !inRun {
		if err := train.Writable(r.output.summary); err != nil {
			return err
		}
	}
	if r.output.out != "" {
		if err := r.checkFolder(); err != nil {
			return err
		}
	}
	if r.corpus, err = data.OpenSet(paths, r.model.Config().Vocab, r.job.seq); err != nil {
		return err
	}
	if err := r.checkData(ctx); err != nil {
		return err
	}
	return r.findWords()
}

// createFolder makes the run folder, and takes it: --out, or runs/<model>-<time>, with a number where runs start in one second.
func (r *run) createFolder(now time.Time) (lock io.Closer, err error) {
	name := r.output.out
	if name == "" {
		name = filepath.Join("runs", r.job.model+now.Format("-20060102-150405"))
	}
	r.folder = train.Folder(name)
	if r.saves.resume != "" {
		if lock, err = r.folder.Lock(); err != nil {
			return nil, err
		}
		if err = r.stillNewest(); err == nil {
			err = r.folder.Continue(r.settings())
		}
		if err != nil {
			return nil, errors.Join(err, lock.Close())
		}
		return lock, nil
	}
	err = r.folder.Create(r.settings())
	for n := 2; errors.Is(err, train.ErrExists) && r.output.out == ""; n++ {
		r.folder = train.Folder(fmt.Sprintf("%s-%d", name, n))
		err = r.folder.Create(r.settings())
	}
	if err != nil {
		return nil, err
	}
	return r.folder.Lock()
}

func (r *run) train(ctx context.Context, sig *signals) (*train.Result, error) {
	leaves := r.job.globalBatch / r.job.microBatch
	rounds := max(1, heldOut/r.job.globalBatch)
	corpus := train.NewCorpus(r.corpus, r.learning.seed, r.job.microBatch, r.job.seq, rounds*leaves)
	progress := train.NewProgress(r.stderr, func() (used, planned int64) {
		for _, m := range r.cluster.Memory() {
			used, planned = max(used, m.Used), max(planned, m.Planned)
		}
		return used, planned
	})
	defer progress.Close()
	progress.Saves(r.saves.newestSaved)
	report := func(e train.Event) {
		if !e.Validation {
			r.wire = mostSent(r.cluster.Wire())
		}
		r.output.audience.hear(e)
		progress.Report(e)
	}
	return train.Run(ctx, r.cluster, corpus, train.Settings{From: r.saves.position(), SaveEvery: r.saves.every, Save: r.saver(sig),
		Steps: r.learning.steps, StopAt: r.learning.stopAt, EvalEvery: r.learning.evalEvery, EvalRounds: rounds, EvalLeaves: leaves,
		Rate: r.learning.rates().LR, MaxSkips: maxSkips, Stop: sig.stop, Now: time.Now, Report: report,
	})
}

func (r *run) summary(ctx context.Context, res *train.Result) (*train.Summary, error) {
	hash, err := r.cluster.StateSHA256(ctx)
	if err != nil {
		return nil, err
	}
	s := &train.Summary{Stage: r.job.stage, Ranks: r.job.ranks, Steps: res.At.Step, ResumedFrom: r.saves.position().Step, Losses: train.Numbers(res.Losses),
		ValLoss: train.Number(res.ValLoss), StateSHA256: hash, TokensPerS: train.Number(float64(res.Tokens) / res.Time.Seconds()),
		Wire: r.wire, PlanSHA256: r.program.SHA256()}
	for _, m := range r.cluster.Memory() {
		s.Memory = append(s.Memory, train.Memory{Rank: m.Rank, PlannedPeak: m.Planned, UsedPeak: m.Used, ByKind: m.UsedBy})
	}
	return s, nil
}

// mostSent is the largest number of any rank, by verb.
func mostSent(ranks []zero.Traffic) (most zero.Traffic) {
	for _, t := range ranks {
		most.AllGather = max(most.AllGather, t.AllGather)
		most.ReduceScatter = max(most.ReduceScatter, t.ReduceScatter)
		most.Scalars = max(most.Scalars, t.Scalars)
	}
	return most
}

// sample prints a text that the model writes, after the first words of the held-out text.
func (r *run) sample(ctx context.Context, stop <-chan struct{}) error {
	if r.output.sample == 0 || r.output.quiet {
		return nil
	}
	prompt := make([]int32, min(promptTokens, r.job.seq, r.corpus.Val.Len()))
	if err := r.corpus.Val.Read(0, prompt); err != nil {
		return err
	}
	text, err := train.Sample(ctx, r.cluster, prompt, train.Sampling{Tokens: r.output.sample, Context: r.job.seq, Temperature: 0.8,
		TopK: 40, Seed: r.learning.seed, Stop: stop})
	if errors.Is(err, train.ErrLogits) { // of the state that was trained, which is saved and can be looked at
		fmt.Fprintf(r.stderr, "note       no sample: %v\n", err)
		return nil
	}
	if err != nil || len(text) == 0 {
		return err
	}
	show := data.IDs
	if r.corpus.Text {
		show = data.Text
	}
	fmt.Fprintf(r.stdout, "\nafter %q the model writes\n%s\n", show(prompt), show(text))
	return nil
}

// promptTokens is how much held-out text starts a sample.
const promptTokens = 32
