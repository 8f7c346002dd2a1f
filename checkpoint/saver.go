package checkpoint

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"unsafe"

	"golang.org/x/sync/errgroup"

	"zeroshard/internal/pages"
)

// Saver saves while training goes on. Save copies the state, then a goroutine writes the copy; one save is under way at a time, so the
// memory is that of one copy. Its methods are called by one goroutine.
type Saver struct {
	store *Store
	keep  int            // steps to keep; 0: all
	told  func(step int) // when a step is committed; from the writing goroutine

	snapshots []*snapshot
	writing   sync.WaitGroup
	err       error // of the goroutine, until somebody is told
}

// NewSaver returns a saver into store, which keeps the newest keep steps, all if 0. told, if not nil, hears of each commit.
func NewSaver(store *Store, keep int, told func(step int)) *Saver {
	if told == nil {
		told = func(int) {}
	}
	return &Saver{store: store, keep: keep, told: told}
}

// Save takes the state of the step m.Step, one source for each rank of this process. When it returns training may go on: what is
// committed in the background is the state at the call. It waits for the save before, whose error it returns.
func (s *Saver) Save(m Manifest, ranks []Source) error {
	if err := s.Wait(); err != nil {
		return err
	}
	v, err := s.store.Begin(m)
	if err != nil {
		return err
	}
	for len(s.snapshots) < len(ranks) {
		s.snapshots = append(s.snapshots, &snapshot{})
	}
	files := make([]*rankFile, len(ranks))
	var g errgroup.Group
	for r, src := range ranks {
		g.Go(func() (err error) {
			files[r], err = s.snapshots[r].take(v, r, src)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		for _, f := range files {
			if f != nil {
				_, _ = f.finish() // which says that pieces did not come
			}
		}
		return s.store.failed(m.Step, errors.Join(err, v.Abort()))
	}
	s.writing.Add(1)
	go func() {
		defer s.writing.Done()
		s.err = s.write(v, files)
	}()
	return nil
}

// write is the part in the background.
func (s *Saver) write(v *Save, files []*rankFile) error {
	entries := make([]Entry, len(files))
	var g errgroup.Group
	for r, f := range files {
		g.Go(func() (err error) {
			entries[r], err = s.snapshots[r].write(f)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return s.store.failed(v.m.Step, errors.Join(err, v.Abort()))
	}
	err := v.end(entries)
	var unnamed *LatestError
	if err == nil || errors.As(err, &unnamed) {
		s.told(v.m.Step)
	}
	if err != nil {
		return err
	}
	if s.keep > 0 {
		if _, err := s.store.Prune(s.keep); err != nil {
			return err
		}
	}
	return nil
}

// Wait waits for the save that is under way, and returns its error, once.
func (s *Saver) Wait() error {
	s.writing.Wait()
	err := s.err
	s.err = nil
	return err
}

// Close is Wait, and frees the memory.
func (s *Saver) Close() error {
	err := s.Wait()
	for _, c := range s.snapshots {
		err = errors.Join(err, c.free())
	}
	s.snapshots = nil
	return err
}

// snapshot is a copy of what one rank saves.
type snapshot struct {
	memory []byte
	values []float32
	pieces []Piece // that were copied, one after the other
}

// take begins the rank's file, writes what is streamed into it, and copies the rest.
func (c *snapshot) take(v *Save, rank int, src Source) (*rankFile, error) {
	all := src.Pieces()
	slices.SortStableFunc(all, func(a, b Piece) int { return order(a.Streamed) - order(b.Streamed) })
	first := slices.IndexFunc(all, func(p Piece) bool { return !p.Streamed })
	if first < 0 {
		first = len(all)
	}
	f, err := newRankFile(v, rank, all)
	if err != nil {
		return nil, err
	}
	for _, p := range all[:first] {
		if err := f.write(p, func(lo int, dst []float32) error { return src.Read(p, lo, dst) }); err != nil {
			return f, err
		}
	}
	c.pieces = all[first:]
	if err := c.reserve(); err != nil {
		return f, err
	}
	at := 0
	for _, p := range c.pieces {
		if err := src.Read(p, 0, c.values[at:at+p.Len]); err != nil {
			return f, err
		}
		at += p.Len
	}
	return f, nil
}

func order(streamed bool) int {
	if streamed {
		return 0
	}
	return 1
}

// reserve makes room for the pieces; the memory is kept for the next time.
func (c *snapshot) reserve() error {
	n := 0
	for _, p := range c.pieces {
		n += p.Len
	}
	if n <= len(c.values) {
		return nil
	}
	if err := c.free(); err != nil {
		return err
	}
	memory, err := pages.Map(int64(n) * 4)
	if err != nil {
		return fmt.Errorf("memory of a snapshot, %d bytes: %w", n*4, err)
	}
	c.memory, c.values = memory, unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(memory))), n)
	return nil
}

// write writes the copy and ends the file.
func (c *snapshot) write(f *rankFile) (Entry, error) {
	at := 0
	for _, p := range c.pieces {
		err := f.write(p, func(lo int, dst []float32) error {
			copy(dst, c.values[at+lo:])
			return nil
		})
		if err != nil {
			break // finish says it
		}
		at += p.Len
	}
	return f.finish()
}

func (c *snapshot) free() error {
	if c.memory == nil {
		return nil
	}
	m := c.memory
	c.memory, c.values = nil, nil
	return pages.Unmap(m)
}
