package checkpoint

import (
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"zeroshard/internal/pages"
)

// Verify reads every byte of a committed step and returns all damage that it finds, each a *CorruptError that names the file, the place
// and the tensor.
func (s *Saved) Verify() error {
	errs := make([]error, len(s.blocks.files))
	var g errgroup.Group
	g.SetLimit(verifiers)
	for i, f := range s.blocks.files {
		g.Go(func() error {
			memory, err := pages.Map(f.room()) // direct I/O asks for pages
			for k := 0; k < len(f.Sums) && err == nil; k++ {
				if _, bad := f.read(int64(k), memory); bad != nil {
					errs[i] = errors.Join(errs[i], s.name(i, bad))
				}
			}
			errs[i] = errors.Join(errs[i], err, pages.Unmap(memory))
			return nil
		})
	}
	_ = g.Wait()
	return errors.Join(errs...)
}

// verifiers read files at the same time.
const verifiers = 4

// name says which tensors lie in a damaged block.
func (s *Saved) name(file int, err error) error {
	var bad *CorruptError
	if !errors.As(err, &bad) || bad.Offset < 0 {
		return err
	}
	end := bad.Offset + s.blocks.files[file].Block
	first, more := "", 0
	for _, p := range s.Manifest.Params {
		for _, state := range s.Manifest.StatesOf(p) {
			key := Piece{Param: p.Name, State: state}.key()
			for _, part := range s.index[key] {
				if part.file == file && part.off < end && bad.Offset < part.off+4*int64(part.len) {
					if first == "" {
						first = key
					} else {
						more++
					}
				}
			}
		}
	}
	if more > 0 {
		first += fmt.Sprintf(" or one of %d others in that block", more)
	}
	return &CorruptError{File: bad.File, Tensor: first, Offset: bad.Offset, Reason: bad.Reason}
}

// Verify checks every committed step and the file latest. The errors are those of Saved.Verify, of Open, and a *CorruptError for a
// latest that names no committed step.
func (s *Store) Verify() (steps []int, err error) {
	for range 3 { // beside a run that removes steps, all of a list may be gone before the first is read
		listed, err := s.Steps()
		if err != nil {
			return nil, err
		}
		if steps, err = s.verifyAll(listed); len(steps) > 0 || len(listed) == 0 {
			return steps, err
		}
	}
	return nil, nil
}

func (s *Store) verifyAll(steps []int) ([]int, error) {
	var errs []error
	var left []int
	for _, step := range steps {
		err := s.VerifyStep(step)
		if errors.Is(s.Has(step), ErrNone) { // a run that goes on has removed it meanwhile
			continue
		}
		left, errs = append(left, step), append(errs, err)
	}
	if steps = left; len(steps) > 0 {
		errs = append(errs, s.verifyLatest())
	}
	return steps, errors.Join(errs...)
}

// VerifyStep opens a committed step and is Saved.Verify.
func (s *Store) VerifyStep(step int) error {
	saved, err := s.Open(step)
	if err != nil {
		return err
	}
	return errors.Join(saved.Verify(), saved.Close())
}

// verifyLatest finds a latest that is damaged: what it names must be a step. It may be older than the newest, where a save stopped
// between its commit and that file.
func (s *Store) verifyLatest() error {
	at := path.Join(s.dir, latest)
	names, err := s.fs.List(s.dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if name != latest {
			continue
		}
		text, err := readAll(s.fs, at)
		if err != nil {
			return err
		}
		step, ok := stepOf(strings.TrimSuffix(text, "\n"))
		if !ok || text != stepName(step)+"\n" {
			return corrupt(at, "%q is no step", text)
		}
		if c, err := s.scan(); err == nil && !slices.Contains(c.steps, step) && !slices.Contains(c.later, step) {
			return corrupt(at, "it names step %d, which is not committed", step)
		}
	}
	return nil
}

func readAll(fs FS, at string) (string, error) {
	f, err := fs.Open(at)
	if err != nil {
		return "", fmt.Errorf("checkpoint: %w", err)
	}
	defer f.Close()
	text := make([]byte, min(f.Size(), minBlock))
	if n, err := f.ReadAt(text, 0); n < len(text) {
		return "", fmt.Errorf("checkpoint: %s: %w", at, err)
	}
	return string(text), nil
}
