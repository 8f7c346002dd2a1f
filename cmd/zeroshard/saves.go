package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"

	"github.com/spf13/pflag"

	"zeroshard"
	"zeroshard/checkpoint"
	"zeroshard/memory"
	"zeroshard/models/gpt"
	"zeroshard/train"
	"zeroshard/zero"
)

const (
	defaultSaveEvery = 100
	defaultKeepSaves = 10
)

// saves is when a run saves its state, and what it starts from.
type saves struct {
	every, keep int
	resume      string // "": no; newest; or a step
	initFrom    string
	origin

	store     *checkpoint.Store
	saver     *checkpoint.Saver
	corpus    func() (string, error) // the hash of what is trained on
	committed atomic.Int64           // the newest step that this run has committed, 0 for none
}

// origin is what a run starts from.
type origin struct {
	from      *checkpoint.Manifest // of the step that the run goes on from, nil for none
	began     map[string]string    // the settings of a run in whose folder nothing is saved yet
	init      *source              // what --init-from names, nil for none or where from is there
	endOfText *int32               // of the model, where its tokenizer has none
	given     json.RawMessage      // the settings, by flag
	told      []string             // of settings that are not as they were
}

// newest is --resume without a step.
const newest = "newest"

func (s *saves) flags(f *pflag.FlagSet) {
	f.IntVar(&s.every, "save-every", defaultSaveEvery, "save the state every `N` steps and at the end; 0: only when INT, TERM, HUP or USR1 asks."+unchanged)
	f.IntVar(&s.keep, "keep-saves", defaultKeepSaves, "keep the newest `N` saved steps; 0: all."+unchanged)
	f.StringVar(&s.resume, "resume", "", "go on from the newest saved step of the run in --out, or from `STEP` (--resume=STEP); flags that are not given are as they were."+unchanged)
	f.Lookup("resume").NoOptDefVal = newest
	f.StringVar(&s.initFrom, "init-from", "", "start from the weights in `DIR`: a Hugging Face GPT-2 folder, a run or a saved step. With --resume, only where nothing is saved yet."+changed)
}

func (s *saves) judge(o *output, set *pflag.FlagSet, f *faults) {
	f.check(s.resume != "" || !set.Changed("resume"), "--resume=: want a step, or --resume alone for the newest")
	f.check(s.initFrom != "" || !set.Changed("init-from"), "--init-from: the folder's name is empty")
	f.check(s.every >= 0, "--save-every %d: use a number of steps, or 0 for only on request", s.every)
	f.check(s.keep >= 0, "--keep-saves %d: use 1 or more, or 0 for all", s.keep)
	f.check(s.resume == "" || o.out != "", "--resume: say which run goes on: --out DIR")
}

// savedModel is the model in a manifest.
type savedModel struct {
	Kind string `json:"kind"` // "gpt"
	Name string `json:"name"`
	gpt.Config
	EndOfText *int32 `json:"end_of_text,omitempty"` // what --init-from or import says of it, where the tokenizer has none
}

// readModel reads the model that a manifest describes.
func readModel(m *checkpoint.Manifest) (savedModel, error) {
	var s savedModel
	if err := json.Unmarshal(m.Model, &s); err != nil {
		return s, fmt.Errorf("%w: its model: %w", checkpoint.ErrMismatch, err)
	}
	if s.Kind != "gpt" {
		return s, fmt.Errorf("%w: it holds a model of kind %q, this command knows gpt", checkpoint.ErrMismatch, s.Kind)
	}
	return s, nil
}

// openStore begins the saves of a run, in its folder.
func (r *run) openStore() error {
	s := &r.saves
	s.store = checkpoint.NewStore(checkpoint.OS{}, filepath.Join(string(r.folder), checkpoint.Folder))
	if err := errors.Join(s.store.Clean(), r.folder.Clean()); err != nil {
		return err
	}
	if err := r.output.words.put(string(r.folder)); err != nil {
		return err
	}
	if s.from != nil {
		gone, err := s.store.Supersede(s.from.Step)
		if err != nil {
			return err
		}
		if len(gone) > 0 {
			fmt.Fprintf(r.stderr, "resume     %d later step(s) are set aside: the run writes them anew\n", len(gone))
		}
	}
	s.saver = checkpoint.NewSaver(s.store, s.keep, func(step int) { s.committed.Store(int64(step)) })
	return nil
}

// position is where the run starts.
func (s *saves) position() train.Position {
	if s.from == nil {
		return train.Position{}
	}
	return train.Position{Step: s.from.Step, Skipped: s.from.Step - s.from.Updates, Tokens: s.from.Tokens}
}

// newestSaved is the newest step that the run has committed or started from, 0 for none.
func (s *saves) newestSaved() int {
	return max(int(s.committed.Load()), s.position().Step)
}

// closeSaves waits for the last save, and says where it is.
func (r *run) closeSaves() error {
	err := r.saves.saver.Close()
	if step := r.saves.committed.Load(); step > 0 {
		fmt.Fprintf(r.stderr, "saved      step %d in %s\n", step, r.saves.store.Dir())
	}
	return err
}

// saver is train.Settings.Save. Without --save-every a run saves only when a signal has asked.
func (r *run) saver(sig *signals) func(train.Position) error {
	return func(at train.Position) error {
		if r.saves.every == 0 && sig.err() == nil {
			return nil
		}
		return r.save(at)
	}
}

// save takes the state; the rest happens while training goes on.
func (r *run) save(at train.Position) error {
	m := r.cluster.Manifest(checkpoint.Position{Step: at.Step, Updates: at.Step - at.Skipped, Tokens: at.Tokens, Seed: r.learning.seed})
	var err error
	if m.Model, err = json.Marshal(savedModel{"gpt", r.job.model, r.model.Config(), r.saves.endOfText}); err != nil {
		return err
	}
	if m.Data, err = r.dataPosition(at); err != nil {
		return err
	}
	m.Settings = r.saves.given
	return r.saves.saver.Save(m, r.cluster.Sources())
}

// dataPosition is where the run stands in its data, and what data that is.
func (r *run) dataPosition(at train.Position) (d checkpoint.Data, err error) {
	d = checkpoint.Data{Files: names(r.learning.data), Train: int64(r.corpus.Train.Len()), Val: int64(r.corpus.Val.Len()), Tokenizer: r.output.words.name,
		TokenizerSHA256: r.output.words.sha256}
	if from := r.saves.from; from != nil {
		d.Sequences = from.Data.Sequences
	}
	d.Sequences += int64(at.Step-r.saves.position().Step) * int64(r.job.globalBatch)
	d.SHA256, err = r.saves.corpus()
	return d, err
}

// describe is the line about saving before a run.
func (s *saves) describe(p *zero.Program) string {
	when := "only when a signal asks for it"
	if s.every > 0 {
		when = fmt.Sprintf("every %d steps and at the end", s.every)
	}
	kept := "all are kept"
	if s.keep > 0 {
		kept = fmt.Sprintf("the newest %d are kept", s.keep)
	}
	written, meanwhile := zeroshard.SaveBytes(p)
	return fmt.Sprintf("%s, %s; each writes %s a rank and takes %s of host memory meanwhile", when, kept, memory.FormatBytes(written), memory.FormatBytes(meanwhile))
}

// savedError is the end of a run that was asked to stop, and has saved its state.
type savedError struct {
	signal error
	step   int
	folder string
}

func (e *savedError) Error() string {
	return fmt.Sprintf("%v; step %d is saved, go on with: zeroshard train --out %s --resume", e.signal, e.step, quote(e.folder))
}

// ended is the end of a run: what a signal makes of it.
func (r *run) ended(sig *signals, res *train.Result) error {
	err := sig.err()
	if err == nil || !res.Stopped && res.At.Step >= r.learning.end() {
		return nil // it has reached its end, whoever asked what
	}
	if res.At.Step == 0 {
		return err
	}
	return &savedError{err, res.At.Step, string(r.folder)}
}
