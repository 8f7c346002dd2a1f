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
	prefix = "step-"
	latest = "latest"
)

// What a store leaves beside its steps begins with a dot:
//
//	.step-N.tmp         a save that has not been committed          Begin, Clean and the failed save itself remove it
//	.step-N.removed     a step that is being removed                Clean removes it
//	.step-N.superseded  a step that a run went back behind, or      Prune removes it
//	                    what had a step's name and was none
//	.back-to-step-N     steps after N are being set aside: until    Supersede removes it; after a stop the next Supersede
//	                    that is done they count as set aside        or Clean does the rest
//	.latest.tmp         of latest                                   whoever writes latest next
const (
	unfinished = ".tmp"
	removed    = ".removed"
	superseded = ".superseded"
	goingBack  = ".back-to-"
)

// leftover is the step of a leftover with that ending.
func leftover(name, ending string) (step int, ok bool) {
	bare, dot := strings.CutPrefix(name, ".")
	bare, end := strings.CutSuffix(bare, ending)
	step, is := stepOf(bare)
	return step, dot && end && is
}

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

// Steps lists the committed steps, ascending: the folders of that name that hold a manifest, without those that a run is going back
// behind. Whether they are sound is Verify's to say. A store that does not exist has none.
func (s *Store) Steps() ([]int, error) {
	c, err := s.scan()
	return c.steps, err
}

// Leftovers lists what is in the folder and is no step: what a save left that did not end, and files of others.
func (s *Store) Leftovers() ([]string, error) {
	c, err := s.scan()
	return c.rest, err
}

// contents is what is in a store.
type contents struct {
	steps []int
	later []int    // steps after that to which a run is going back
	back  int      // that step, -1 for none
	rest  []string // names that are no step
}

func (s *Store) scan() (c contents, err error) {
	c.back = -1
	names, err := s.fs.List(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return c, fmt.Errorf("checkpoint: %w", err)
	}
	var all []int
	for _, name := range names {
		bare, isDir := strings.CutSuffix(name, "/")
		step, ok := stepOf(bare)
		switch {
		case bare == latest && !isDir:
			continue
		case ok && isDir:
			inside, err := s.fs.List(path.Join(s.dir, bare))
			if errors.Is(err, fs.ErrNotExist) {
				continue // a run that goes on has removed it meanwhile
			}
			if err != nil {
				return c, fmt.Errorf("checkpoint: %w", err)
			}
			if slices.Contains(inside, ManifestFile) {
				all = append(all, step)
				continue
			}
		}
		if to, ok := stepOf(strings.TrimPrefix(bare, goingBack)); ok && strings.HasPrefix(bare, goingBack) && (c.back < 0 || to < c.back) {
			c.back = to
		}
		c.rest = append(c.rest, bare)
	}
	slices.Sort(all)
	for _, step := range all {
		if c.back >= 0 && step > c.back {
			c.later, c.rest = append(c.later, step), append(c.rest, stepName(step))
		} else {
			c.steps = append(c.steps, step)
		}
	}
	return c, nil
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

// Clean removes what saves left that did not end, and steps that were being removed, and sets aside what was being set aside. The next run
// that saves here calls it first.
func (s *Store) Clean() error {
	c, err := s.scan()
	if err != nil {
		return err
	}
	for _, name := range c.rest {
		_, tmp := leftover(name, unfinished)
		_, gone := leftover(name, removed)
		if tmp || gone || name == "."+latest+unfinished {
			if err := s.fs.RemoveAll(path.Join(s.dir, name)); err != nil {
				return fmt.Errorf("checkpoint: clean up: %w", err)
			}
		}
	}
	if c.back >= 0 {
		_, err = s.Supersede(c.back)
	}
	return err
}

// Remove removes a step: its name goes first and at once, so nobody takes a half-removed step for a step.
func (s *Store) Remove(step int) error {
	if err := s.retire(step, removed); err != nil {
		return fmt.Errorf("checkpoint: remove step %d: %w", step, err)
	}
	return nil
}

// retire renames a step away, and removes it if the new name says so.
func (s *Store) retire(step int, ending string) error {
	away := path.Join(s.dir, "."+stepName(step)+ending)
	err := s.fs.RemoveAll(away) // of an earlier time
	if err == nil {
		err = s.fs.Rename(s.StepDir(step), away)
	}
	if err == nil {
		err = s.fs.SyncDir(s.dir)
	}
	if err == nil && ending == removed {
		err = s.fs.RemoveAll(away)
	}
	return err
}

// Supersede takes the steps after step out of the store: a run goes back behind them and will write others. They are renamed, not removed;
// Prune removes them. A mark makes it one act: from when it is there on, none of them counts, whenever the machine stops.
func (s *Store) Supersede(step int) (gone []int, err error) {
	c, err := s.scan()
	if err != nil {
		return nil, err
	}
	all := slices.Concat(c.steps, c.later)
	if c.back < 0 && (len(all) == 0 || all[len(all)-1] <= step) {
		return nil, nil
	}
	if err := s.setAside(step, all, &gone); err != nil {
		return gone, fmt.Errorf("checkpoint: go back to step %d: %w", step, err)
	}
	return gone, nil
}

func (s *Store) setAside(step int, all []int, gone *[]int) error {
	mark := path.Join(s.dir, goingBack+stepName(step))
	if err := s.fs.RemoveAll(mark); err != nil {
		return err
	}
	if err := writeFile(s.fs, mark, nil); err != nil {
		return err
	}
	if err := s.point(step); err != nil { // which makes the mark's name safe too
		return err
	}
	for _, later := range slices.Backward(all) {
		if later <= step {
			break
		}
		if err := s.retire(later, superseded); err != nil {
			return err
		}
		*gone = append(*gone, later)
	}
	c, err := s.scan()
	if err != nil {
		return err
	}
	for _, name := range c.rest {
		if strings.HasPrefix(name, goingBack) {
			if err := s.fs.RemoveAll(path.Join(s.dir, name)); err != nil {
				return err
			}
		}
	}
	return s.fs.SyncDir(s.dir)
}

// Prune removes all steps but the newest keep, which must be at least 1, and what was superseded.
func (s *Store) Prune(keep int) (gone []int, err error) {
	if keep < 1 {
		return nil, fmt.Errorf("%w: to keep %d steps is to lose the run: keep at least 1", ErrMismatch, keep)
	}
	c, err := s.scan()
	if err != nil {
		return nil, err
	}
	if gone, err = s.removeAll(c.steps[:max(0, len(c.steps)-keep)]); err != nil {
		return gone, err
	}
	for _, name := range c.rest {
		if _, ok := leftover(name, superseded); ok {
			if err := s.fs.RemoveAll(path.Join(s.dir, name)); err != nil {
				return gone, fmt.Errorf("checkpoint: prune: %w", err)
			}
		}
	}
	if len(gone) > 0 {
		if err := s.pointNewest(); err != nil {
			return gone, fmt.Errorf("checkpoint: prune: %w", err)
		}
	}
	return gone, nil
}

// removeAll removes steps. If latest names one of them (a run that went back and stopped, or a disk that was full, may have left it behind),
// it goes first: that needs no room, which there may not be.
func (s *Store) removeAll(steps []int) (gone []int, err error) {
	at := path.Join(s.dir, latest)
	for _, step := range steps {
		if text, err := readAll(s.fs, at); err == nil && text == stepName(step)+"\n" {
			if err := errors.Join(s.fs.RemoveAll(at), s.fs.SyncDir(s.dir)); err != nil {
				return gone, fmt.Errorf("checkpoint: prune: %w", err)
			}
		}
		if err := s.Remove(step); err != nil {
			return gone, err
		}
		gone = append(gone, step)
	}
	return gone, nil
}

// pointNewest makes latest name the newest step, if it does not.
func (s *Store) pointNewest() error {
	newest, err := s.Newest()
	if err != nil {
		return err
	}
	if text, err := readAll(s.fs, path.Join(s.dir, latest)); err == nil && text == stepName(newest)+"\n" {
		return nil
	}
	return s.point(newest)
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
