package checkpoint

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"golang.org/x/sync/errgroup"
)

// Save is a step on its way into the store. Ranks write their files, then one commits; until then, and if it never does, there is no
// such step.
type Save struct {
	store  *Store
	m      Manifest
	shapes map[string]Param
	tmp    string
}

// Begin starts the save of step m.Step. The error wraps ErrExists where it is committed already.
func (s *Store) Begin(m Manifest) (*Save, error) {
	if err := s.Has(m.Step); err == nil {
		return nil, fmt.Errorf("%w: step %d in %s", ErrExists, m.Step, s.dir)
	} else if !errors.Is(err, ErrNone) {
		return nil, s.failed(m.Step, err)
	}
	m.Format = Format
	v := &Save{store: s, m: m, shapes: map[string]Param{}, tmp: path.Join(s.dir, "."+stepName(m.Step)+unfinished)}
	for _, p := range m.Params {
		v.shapes[p.Name] = p
	}
	err := s.fs.MkdirAll(s.dir)
	if err == nil {
		err = s.makeWay(m.Step)
	}
	if err == nil {
		err = s.fs.RemoveAll(v.tmp)
	}
	if err == nil {
		err = s.fs.MkdirAll(v.tmp)
	}
	if err != nil {
		return nil, s.failed(m.Step, err)
	}
	return v, nil
}

// makeWay renames away what has the step's name and is no step: a folder whose manifest is gone, a file.
func (s *Store) makeWay(step int) error {
	if _, err := s.fs.List(s.StepDir(step)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return s.retire(step, superseded)
}

func (s *Store) failed(step int, err error) error {
	e := &SaveError{Step: step, Last: -1, Err: err}
	steps, unknown := s.Steps()
	if len(steps) > 0 {
		e.Last = steps[len(steps)-1]
	}
	e.Unknown = unknown
	return e
}

// Rank writes the file of a rank. Ranks may write at the same time.
func (v *Save) Rank(rank int, src Source) (Entry, error) {
	pieces := src.Pieces()
	f, err := newRankFile(v, rank, pieces)
	if err != nil {
		return Entry{}, err
	}
	for _, p := range pieces {
		if err := f.write(p, func(lo int, dst []float32) error { return src.Read(p, lo, dst) }); err != nil {
			_, closed := f.finish()
			return Entry{}, errors.Join(err, without(closed, err))
		}
	}
	return f.finish()
}

// without is err, unless it says again what was said.
func without(err, said error) error {
	if errors.Is(err, said) || errors.Is(err, ErrSave) {
		return nil
	}
	return err
}

// Commit makes the step exist: call it when every rank's file is written, with all their entries. What Open would refuse is not committed:
// where ranks did not write, or wrote what is not theirs, the error names what is missing or twice there.
func (v *Save) Commit(entries []Entry) error {
	v.m.Files = slices.SortedFunc(slices.Values(entries), func(a, b Entry) int { return cmp.Compare(a.Name, b.Name) })
	text, err := v.m.encode()
	if err != nil {
		return v.store.failed(v.m.Step, err)
	}
	disk, dir := v.store.fs, v.store.dir
	for _, do := range []func() error{
		func() error { return writeFile(disk, path.Join(v.tmp, ManifestFile), text) },
		v.prove,
		func() error { return disk.SyncDir(v.tmp) },
		func() error { return disk.Rename(v.tmp, v.store.StepDir(v.m.Step)) },
		func() error { return disk.SyncDir(dir) },
	} {
		if err := do(); err != nil {
			return v.store.failed(v.m.Step, err)
		}
	}
	if err := v.store.point(v.m.Step); err != nil {
		return &LatestError{Step: v.m.Step, Err: err}
	}
	return nil
}

// prove opens what was written as a reader will. It reads the manifest and the first blocks of the files.
func (v *Save) prove() error {
	s, err := OpenStep(v.store.fs, v.tmp)
	if err != nil {
		return err
	}
	return s.Close()
}

// Abort gives the save up and removes what was written.
func (v *Save) Abort() error { return v.store.fs.RemoveAll(v.tmp) }

// Save saves a step from the ranks of one process, one source each, and returns when it is committed.
func (s *Store) Save(m Manifest, ranks []Source) error {
	v, err := s.Begin(m)
	if err != nil {
		return err
	}
	entries := make([]Entry, len(ranks))
	var g errgroup.Group
	for r, src := range ranks {
		g.Go(func() (err error) {
			entries[r], err = v.Rank(r, src)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return s.failed(m.Step, errors.Join(err, v.Abort()))
	}
	return v.end(entries)
}

// end is Commit, and removes what it did not commit.
func (v *Save) end(entries []Entry) error {
	err := v.Commit(entries)
	if err != nil {
		err = errors.Join(err, v.Abort())
	}
	return err
}
