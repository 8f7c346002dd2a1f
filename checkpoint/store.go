package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// ManifestFile is the name of a step's manifest.
const ManifestFile = "manifest.json"

const (
	prefix     = "step-"
	latest     = "latest"
	unfinished = ".tmp"        // of a save that has not been committed
	removed    = ".removed"    // of a step that is being removed
	superseded = ".superseded" // of a step that a run went back behind
)

// Store is the folder in which a run keeps its steps.
type Store struct {
	fs  FS
	dir string
}

// NewStore returns the store in dir, which need not exist yet.
func NewStore(fs FS, dir string) *Store { return &Store{fs: fs, dir: dir} }

// Dir is the store's folder.
func (s *Store) Dir() string { return s.dir }

// StepDir is the folder of a step.
func (s *Store) StepDir(step int) string { return path.Join(s.dir, stepName(step)) }

func stepName(step int) string { return fmt.Sprintf("%s%08d", prefix, step) }

// stepOf reads a folder's name: only what stepName writes is a step.
func stepOf(name string) (int, bool) {
	digits, ok := strings.CutPrefix(name, prefix)
	step, err := strconv.Atoi(digits)
	return step, ok && err == nil && step >= 0 && stepName(step) == name
}

// Steps lists the committed steps, ascending: the folders of that name that hold a manifest. Whether they are sound is Verify's
// to say. A store that does not exist has none.
func (s *Store) Steps() ([]int, error) {
	steps, _, err := s.scan()
	return steps, err
}

// Leftovers lists what is in the folder and is no step: what a save left that did not end, and files of others.
func (s *Store) Leftovers() ([]string, error) {
	_, rest, err := s.scan()
	return rest, err
}

func (s *Store) scan() (steps []int, rest []string, err error) {
	names, err := s.fs.List(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("checkpoint: %w", err)
	}
	for _, name := range names {
		bare, isDir := strings.CutSuffix(name, "/")
		step, ok := stepOf(bare)
		switch {
		case bare == latest && !isDir:
			continue
		case ok && isDir:
			inside, err := s.fs.List(path.Join(s.dir, bare))
			if err != nil {
				return nil, nil, fmt.Errorf("checkpoint: %w", err)
			}
			if slices.Contains(inside, ManifestFile) {
				steps = append(steps, step)
				continue
			}
		}
		rest = append(rest, bare)
	}
	slices.Sort(steps)
	return steps, rest, nil
}

// Newest is the newest committed step. The error wraps ErrNone where there is none.
func (s *Store) Newest() (int, error) {
	steps, err := s.Steps()
	if err != nil {
		return 0, err
	}
	if len(steps) == 0 {
		return 0, fmt.Errorf("%w: nothing is committed in %s", ErrNone, s.dir)
	}
	return steps[len(steps)-1], nil
}

// newest is Newest for messages: -1 for none.
func (s *Store) newest() int {
	step, err := s.Newest()
	if err != nil {
		return -1
	}
	return step
}

// Has reports whether step is committed. The error wraps ErrNone where it is not, and lists those that are.
func (s *Store) Has(step int) error {
	steps, err := s.Steps()
	if err != nil {
		return err
	}
	if slices.Contains(steps, step) {
		return nil
	}
	if len(steps) == 0 {
		return fmt.Errorf("%w: nothing is committed in %s", ErrNone, s.dir)
	}
	return fmt.Errorf("%w: step %d is not committed in %s, there are %s", ErrNone, step, s.dir, ranges(steps))
}

// ranges shows ascending numbers, many of them shortly.
func ranges(steps []int) string {
	const most = 8
	var text []string
	for i, step := range steps {
		if len(steps) > most && i >= most/2 && i < len(steps)-most/2 {
			if i == most/2 {
				text = append(text, "…")
			}
			continue
		}
		text = append(text, strconv.Itoa(step))
	}
	return strings.Join(text, ", ")
}

// Clean removes what saves left that did not end, and steps that were being removed. The next run that saves here calls it first.
func (s *Store) Clean() error {
	_, rest, err := s.scan()
	if err != nil {
		return err
	}
	for _, name := range rest {
		if strings.HasPrefix(name, ".") && (strings.HasSuffix(name, unfinished) || strings.HasSuffix(name, removed)) {
			if err := s.fs.RemoveAll(path.Join(s.dir, name)); err != nil {
				return fmt.Errorf("checkpoint: clean up: %w", err)
			}
		}
	}
	return nil
}

// Remove removes a step: its name goes first and at once, so nobody takes a half-removed step for a step.
func (s *Store) Remove(step int) error { return s.retire(step, removed) }

// retire renames a step away, and removes it if suffix is removed.
func (s *Store) retire(step int, suffix string) error {
	away := path.Join(s.dir, "."+stepName(step)+suffix)
	err := s.fs.RemoveAll(away) // of an earlier time
	if err == nil {
		err = s.fs.Rename(s.StepDir(step), away)
	}
	if err == nil {
		err = s.fs.SyncDir(s.dir)
	}
	if err == nil && suffix == removed {
		err = s.fs.RemoveAll(away)
	}
	if err != nil {
		return fmt.Errorf("checkpoint: remove step %d: %w", step, err)
	}
	return nil
}

// Supersede takes the steps after step out of the store, newest first: a run goes back behind them and will write others. They are
// renamed, not removed; Prune removes them.
func (s *Store) Supersede(step int) (gone []int, err error) {
	steps, err := s.Steps()
	if err != nil || len(steps) == 0 || steps[len(steps)-1] <= step {
		return nil, err
	}
	if err := s.point(step); err != nil { // first: latest must never name what is not there
		return nil, fmt.Errorf("checkpoint: go back to step %d: %w", step, err)
	}
	for _, later := range slices.Backward(steps) {
		if later <= step {
			break
		}
		if err := s.retire(later, superseded); err != nil {
			return gone, err
		}
		gone = append(gone, later)
	}
	return gone, nil
}

// Prune removes all steps but the newest keep, which must be at least 1, and what was superseded.
func (s *Store) Prune(keep int) (gone []int, err error) {
	if keep < 1 {
		return nil, fmt.Errorf("%w: to keep %d steps is to lose the run: keep at least 1", ErrMismatch, keep)
	}
	steps, rest, err := s.scan()
	if err != nil {
		return nil, err
	}
	if len(steps) > keep { // a run that went back and stopped there may have left latest behind
		if text, err := readAll(s.fs, path.Join(s.dir, latest)); err != nil || text != stepName(steps[len(steps)-1])+"\n" {
			if err := s.point(steps[len(steps)-1]); err != nil {
				return nil, fmt.Errorf("checkpoint: prune: %w", err)
			}
		}
	}
	for _, step := range steps[:max(0, len(steps)-keep)] {
		if err := s.Remove(step); err != nil {
			return gone, err
		}
		gone = append(gone, step)
	}
	for _, name := range rest {
		if strings.HasPrefix(name, ".") && strings.HasSuffix(name, superseded) {
			if err := s.fs.RemoveAll(path.Join(s.dir, name)); err != nil {
				return gone, fmt.Errorf("checkpoint: prune: %w", err)
			}
		}
	}
	return gone, nil
}

// point makes the file latest name a step.
func (s *Store) point(step int) error {
	beside := path.Join(s.dir, "."+latest+unfinished)
	if err := s.fs.RemoveAll(beside); err != nil {
		return err
	}
	if err := writeFile(s.fs, beside, []byte(stepName(step)+"\n")); err != nil {
		return err
	}
	if err := s.fs.Rename(beside, path.Join(s.dir, latest)); err != nil {
		return err
	}
	return s.fs.SyncDir(s.dir)
}

// writeFile writes a file and flushes it.
func writeFile(fs FS, path string, data []byte) error {
	f, err := fs.Create(path)
	if err != nil {
		return err
	}
	n, err := f.Write(data)
	if err == nil && n < len(data) {
		err = io.ErrShortWrite
	}
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}
