package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"zeroshard/checkpoint"
	"zeroshard/train"
)

// landing is a folder that import makes a run's: nothing else may be in it but what an import left that did not end.
type landing struct {
	dir   string
	there bool     // before
	names []string // that were in it
	lock  io.Closer
}

// land refuses a folder that somebody uses, and takes it.
func land(dir string) (*landing, error) {
	l := &landing{dir: dir}
	if err := l.look(); err != nil { // before anything is made
		return nil, err
	}
	var err error
	if l.lock, err = train.Folder(dir).Lock(); err != nil {
		return nil, err
	}
	names := l.names
	if err = l.look(); err == nil {
		err = l.store().Clean()
	}
	if l.names = names; err != nil {
		return nil, errors.Join(err, l.lock.Close())
	}
	return l, nil
}

func (l *landing) store() *checkpoint.Store {
	return checkpoint.NewStore(checkpoint.OS{}, filepath.Join(l.dir, checkpoint.Folder))
}

// look judges what is in the folder.
func (l *landing) look() error {
	entries, err := os.ReadDir(l.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	l.there = l.there || l.lock == nil
	used := func(name string) bool { return !slices.Contains(runParts, name) }
	for _, e := range entries {
		if l.names = append(l.names, e.Name()); used(e.Name()) || !e.IsDir() {
			return usagef("--out %s: the folder is not empty", l.dir)
		}
	}
	steps, err := l.store().Steps()
	if err != nil {
		return err
	}
	rest, err := l.store().Leftovers()
	if err != nil {
		return err
	}
	if len(steps) > 0 || slices.ContainsFunc(rest, func(name string) bool { return !strings.HasPrefix(name, ".") || !strings.HasSuffix(name, ".tmp") }) {
		return usagef("--out %s: the folder is not empty", l.dir)
	}
	return nil
}

// runParts are what import makes.
var runParts = []string{checkpoint.Folder, checkpoint.TokenizerFolder, "." + checkpoint.TokenizerFolder + ".tmp"}

// end lets go of the folder. After an error it is as it was.
func (l *landing) end(err error) error {
	if err != nil {
		for _, name := range runParts {
			if !slices.Contains(l.names, name) {
				err = errors.Join(err, os.RemoveAll(filepath.Join(l.dir, name)))
			}
		}
		if !l.there {
			err = errors.Join(err, os.Remove(l.dir))
		}
	}
	return errors.Join(err, l.lock.Close())
}
