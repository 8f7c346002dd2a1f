package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/pflag"

	"zeroshard"
	"zeroshard/checkpoint"
	"zeroshard/data/tokenizer"
	"zeroshard/models/gpt"
	"zeroshard/train"
	"zeroshard/zero"
)

// notInherited are the flags that a run that goes on does not take over: they say how this command runs, not what is trained.
var notInherited = []string{"out", "summary", "quiet", "sample", "memory-report", "dash", "stop-at", "resume", "init-from", "help"}

// given is the settings of this command line, by flag: what a checkpoint keeps.
func given(set *pflag.FlagSet) (json.RawMessage, error) {
	m := map[string]string{}
	set.VisitAll(func(f *pflag.Flag) {
		if !slices.Contains(notInherited, f.Name) {
			m[f.Name] = fromAnywhere(f)
		}
	})
	return json.Marshal(m)
}

// fromAnywhere is a flag's value such that it means the same in another current folder.
func fromAnywhere(f *pflag.Flag) string {
	paths := fileList{f.Value.String()}
	switch {
	case paths[0] == "" || f.Name != "data" && f.Name != "offload-path":
		return paths[0]
	case f.Name == "data":
		paths = slices.Clone(*f.Value.(*fileList))
	}
	for i, path := range paths {
		if abs, err := filepath.Abs(path); err == nil {
			paths[i] = abs
		}
	}
	if f.Name == "data" {
		return paths.String()
	}
	return paths[0]
}

// findSaved finds the step that the run is to go on from. Without one it says so, and the run starts at the beginning.
func (r *run) findSaved() error {
	s := &r.saves
	if s.resume == "" {
		return nil
	}
	store := r.savedIn()
	step, err := store.Newest()
	if checkpoint.IsNone(err) {
		if _, inside := checkpoint.NewStore(checkpoint.OS{}, r.output.out).Newest(); inside == nil {
			return usagef("--out %s: that is the folder of a run's steps; the run is the folder above it", r.output.out)
		}
	}
	if s.resume != newest {
		if step, err = strconv.Atoi(s.resume); err != nil || step < 0 {
			return usagef("--resume=%s: want a step, or --resume alone for the newest", s.resume)
		}
		err = store.Has(step)
		if step == 0 {
			return usagef("--resume=0: a run from the start needs no --resume, but a folder of its own")
		}
	}
	if s.resume == newest && errors.Is(err, checkpoint.ErrNone) {
		fmt.Fprintf(r.warnings, "resume     nothing is saved in %s: starting at step 0\n", r.output.out)
		s.began, err = begun(r.output.out)
		return err
	}
	if err != nil {
		return err
	}
	s.from, err = checkpoint.ReadManifest(checkpoint.OS{}, store.StepDir(step))
	if err != nil {
		return r.olderStep(err, step)
	}
	if step == 0 {
		err = usagef("--resume: %s holds imported weights, not a run that could go on: start one with --init-from %s", r.output.out, quote(r.output.out))
	}
	return err
}

// stillNewest is asked when nobody else can save in the folder any more: what was the newest step before may not be it now.
func (r *run) stillNewest() error {
	if r.saves.resume != newest {
		return nil
	}
	step, err := r.savedIn().Newest()
	was := r.saves.position().Step
	if checkpoint.IsNone(err) && was == 0 || err == nil && step == was {
		return nil
	}
	return errors.Join(err, usagef("--resume: another process has saved in %s since this one looked; try again", r.output.out))
}

// outside refuses a folder inside another run's steps: that run removes there what is none of its own.
func outside(out string) error {
	abs, err := filepath.Abs(out)
	if err != nil {
		return err
	}
	for dir := abs; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if filepath.Base(dir) != checkpoint.Folder {
			continue
		}
		if _, err := os.Stat(filepath.Join(filepath.Dir(dir), train.SettingsFile)); err == nil {
			return usagef("--out %s: that lies among the steps of the run in %s: choose a folder of its own", out, filepath.Dir(dir))
		}
	}
	return nil
}

// checkFolder refuses to begin a run among the steps of another: the two could not be told apart. Step 0, imported weights, is no run's.
func (r *run) checkFolder() error {
	if err := outside(r.output.out); err != nil {
		return err
	}
	if r.saves.resume == "" {
		if err := train.Folder(r.output.out).Check(); err != nil {
			return err
		}
	}
	step, err := r.savedIn().Newest()
	switch {
	case checkpoint.IsNone(err) || err == nil && (r.saves.from != nil || step == 0):
		return nil
	case err != nil:
		return err
	}
	return usagef("--out %s: steps up to %d are saved in it: go on with them (--resume), choose another folder or remove them", r.output.out, step)
}

// olderStep adds to the error of a damaged step, if err is one, which older one a run can go on from.
func (r *run) olderStep(err error, damaged int) error {
	if !errors.Is(err, checkpoint.ErrCorrupt) {
		return err
	}
	steps, at := r.savedIn().Steps()
	for _, step := range slices.Backward(steps) {
		if step < damaged && r.savedIn().VerifyStep(step) == nil {
			return fmt.Errorf("%w: step %d is sound, go on from it with --resume=%d", err, step, step)
		}
	}
	return errors.Join(err, at)
}

// savedIn is the store in --out.
func (r *run) savedIn() *checkpoint.Store {
	return checkpoint.NewStore(checkpoint.OS{}, filepath.Join(r.output.out, checkpoint.Folder))
}

// portable is the path of the kernels that do not fuse multiply and add.
const portable = "portable"

// inherit takes over the settings of the saved run for the flags that were not given, and tells which of those given change bits.
func (r *run) inherit(set *pflag.FlagSet) error {
	was := r.saves.began
	if r.saves.from != nil {
		if err := json.Unmarshal(r.saves.from.Settings, &was); err != nil {
			return fmt.Errorf("%w: its settings: %w", checkpoint.ErrMismatch, err)
		}
	}
	if was == nil {
		return nil
	}
	var errs []error
	set.VisitAll(func(f *pflag.Flag) {
		old, ok := was[f.Name]
		now := f.Value.String()
		switch {
		case !ok || old == now || slices.Contains(notInherited, f.Name) && f.Name != "init-from" || f.Name == "data" && f.Changed: // checkData compares contents
		case !f.Changed:
			if err := f.Value.Set(old); err != nil {
				errs = append(errs, fmt.Errorf("%w: its --%s %q: %w", checkpoint.ErrMismatch, f.Name, old, err))
			}
		case strings.HasSuffix(f.Usage, changed) && f.Name != "model":
			r.saves.told = append(r.saves.told, fmt.Sprintf("changed since step %d: --%s was %s, is %s", r.saves.position().Step, f.Name, old, now))
		}
	})
	if from := r.saves.from; from != nil && from.World.Kernels != "" && (from.World.Kernels == portable) != (zeroshard.KernelPath() == portable) {
		r.saves.told = append(r.saves.told, fmt.Sprintf("the kernels were %s, here they are %s: from here on other bits than on that machine", from.World.Kernels, zeroshard.KernelPath()))
	}
	if len(errs) == 0 {
		r.dropStale(set)
	}
	return errors.Join(errs...)
}

// begun reads the settings of a run that has begun in dir, nil where none has.
func begun(dir string) (map[string]string, error) {
	path := filepath.Join(dir, train.SettingsFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var was struct {
		Flags map[string]string `json:"flags"`
	}
	if err == nil {
		err = json.Unmarshal(text, &was)
	}
	if err != nil {
		return nil, &fs.PathError{Op: "read the settings of the run in", Path: path, Err: err}
	}
	return was.Flags, nil
}

// dropStale takes back what was taken over and has no meaning in the layout that is asked for now, and tells it. None of it changes a bit.
func (r *run) dropStale(set *pflag.FlagSet) {
	j := &r.job
	row, err := zero.Stage(j.stage)
	if err != nil {
		return // judged later
	}
	drop := func(name string, stale bool) {
		f := set.Lookup(name)
		was := f.Value.String()
		if !stale || f.Changed || was == f.DefValue || f.Value.Set(f.DefValue) != nil {
			return
		}
		fmt.Fprintf(r.stderr, "resume     --%s %s is left out: it has no meaning in this layout\n", name, was)
	}
	drop("offload-optimizer", row.Offload(zero.HostTier, "").Validate() != nil)
	drop("offload-param", row.Offload("", zero.HostTier).Validate() != nil)
	drop("offload-ratio", !away(j.tiers.optimizer) || row.Offload(zero.HostTier, "").Partly(0.5).Validate() != nil)
	drop("offload-path", j.tiers.optimizer != zero.FileTier && j.tiers.param != zero.FileTier)
	drop("replicas", j.replicas > 1 && j.ranks%j.replicas != 0)
	drop("window", row.ShardsGradients() && j.ranks != j.replicas)
}

// shape is the model's configuration where something else than --model decides it: the saved step or --init-from.
func (r *run) shape(set *pflag.FlagSet) (*gpt.Config, error) {
	var cfg gpt.Config
	name, where := "", ""
	switch {
	case r.saves.from != nil:
		m, err := readModel(r.saves.from)
		if err != nil {
			return nil, err
		}
		cfg, name, where, r.saves.endOfText = m.Config, m.Name, r.output.out, m.EndOfText
	case r.saves.initFrom != "":
		src, err := openSource(r.saves.initFrom)
		if err != nil {
			return nil, err
		}
		r.saves.init = src
		cfg, name, where, r.saves.endOfText = src.config, src.name(), r.saves.initFrom, src.endOfText
	default:
		return nil, nil
	}
	if set.Changed("model") {
		want, err := gpt.Preset(r.job.model)
		if err == nil && !sameShape(want, cfg) {
			return nil, usagef("--model %s: %s holds a model of %d layers × %d heads × %d, vocabulary %d, %d positions: leave --model out", r.job.model, where,
				cfg.Layers, cfg.Heads, cfg.Width, cfg.Vocab, cfg.Positions)
		}
	} else {
		r.job.model = name
	}
	return &cfg, nil
}

func sameShape(a, b gpt.Config) bool {
	for _, c := range []*gpt.Config{&a, &b} {
		c.Dropout = 0
		if c.Inner == 0 {
			c.Inner = 4 * c.Width
		}
		if c.Eps == 0 {
			c.Eps = 1e-5
		}
	}
	return a == b
}

// checkData refuses to go on with other data (the order in which it is drawn would not be the run's), and to feed the bytes of a text to a
// model whose tokens are something else.
func (r *run) checkData(ctx context.Context) error {
	if src := r.saves.init; src != nil && r.corpus.Text {
		words, err := src.words("")
		if err != nil {
			return usagef("--data: text files are read as bytes, and what the tokens of %s are is not known (%v): make a token file with its tokenizer (zeroshard prepare FILES -o DIR --tokenizer "+
				"NAME) and pass --data DIR", r.saves.initFrom, err)
		}
		if words.Vocab() != tokenizer.Bytes().Vocab() {
			return usagef("--data: text files are read as bytes, but the tokens of %s are those of %s: make a token file first (zeroshard prepare FILES -o DIR --tokenizer %s) and pass "+
				"--data DIR", r.saves.initFrom, words.Name(), quote(cmp.Or(src.tokenizer, words.Name())))
		}
	}
	r.fingerprint(ctx)
	if r.saves.from == nil {
		return nil
	}
	was := r.saves.from.Data
	if n, v := int64(r.corpus.Train.Len()), int64(r.corpus.Val.Len()); n != was.Train || v != was.Val {
		return usagef("--data: the run was trained on %d tokens with %d held out (%s), these files have %d and %d: go on with the same data, or start a new run from "+
			"its weights with --init-from %s", was.Train, was.Val, strings.Join(was.Files, ", "), n, v, quote(r.output.out))
	}
	hash, err := r.saves.corpus()
	if err == nil && hash != was.SHA256 {
		err = usagef("--data: the run was trained on other tokens (%s): these files have as many, but not the same; go on with the same data, or start a new run from its weights with "+
			"--init-from %s", strings.Join(was.Files, ", "), quote(r.output.out))
	}
	return err
}

// fingerprint begins to hash the corpus. Nobody waits for it before the first save, or before a run goes on.
func (r *run) fingerprint(ctx context.Context) {
	r.saves.corpus = sync.OnceValues(func() (string, error) { return r.corpus.SHA256(ctx) })
	go r.saves.corpus()
}

// closeCorpus closes the files when nobody reads them any more.
func (r *run) closeCorpus(cancel context.CancelFunc) {
	cancel()
	_, _ = r.saves.corpus() // whose error is told by whoever needs the hash
	_ = r.corpus.Close()
}

// quote is a word for a shell.
func quote(s string) string {
	if s != "" && !strings.ContainsAny(s, " \t\n'\"\\$&|;<>()*?[]#~`!{}") {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
