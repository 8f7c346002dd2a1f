package train

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"zeroshard/internal/claim"
)

// Files of a run folder.
const (
	SettingsFile = "settings.json"
	SummaryFile  = "summary.json"
)

// Folder is a run's own folder. It comes into being when all that can be refused has been, so a refused run leaves nothing.
type Folder string

// Check reports whether Create will do: nothing is in the way, and no other run lives there.
func (f Folder) Check() error {
	info, err := os.Stat(string(f))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("train: run folder: %w", err)
	case !info.IsDir():
		return fmt.Errorf("train: run folder: %w", &fs.PathError{Op: "make", Path: string(f), Err: syscall.ENOTDIR})
	}
	if _, err := os.Stat(f.settings()); err == nil {
		return f.taken()
	}
	return nil
}

// Create makes the folder and writes the settings into it. Of two runs that want one folder, one gets it and the other ErrExists.
func (f Folder) Create(settings any) error {
	if err := os.MkdirAll(string(f), 0o755); err != nil {
		return fmt.Errorf("train: run folder: %w", err)
	}
	claimed, err := os.OpenFile(f.settings(), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return f.taken()
	}
	if err != nil {
		return fmt.Errorf("train: run folder: %w", err)
	}
	if err := errors.Join(claimed.Close(), WriteJSON(f.settings(), settings)); err != nil {
		return errors.Join(err, os.Remove(f.settings())) // or it would count as a run
	}
	return nil
}

// Continue is Create for a run that goes on in its folder, or begins in one where an earlier one got nowhere: its settings are written
// anew. Lock it first.
func (f Folder) Continue(settings any) error { return WriteJSON(f.settings(), settings) }

// Lock makes the folder if it is not there, and takes it for this process: two that save into one would remove each other's files. It ends with Close, or with the process.
// The error wraps ErrExists where another has it.
func (f Folder) Lock() (io.Closer, error) {
	if err := os.MkdirAll(string(f), 0o755); err != nil {
		return nil, fmt.Errorf("train: run folder: %w", err)
	}
	l, err := os.Open(string(f))
	if err != nil {
		return nil, fmt.Errorf("train: run folder: %w", err)
	}
	switch err := claim.Take(l); {
	case err == nil, errors.Is(err, errors.ErrUnsupported):
		return l, nil
	case errors.Is(err, claim.ErrTaken):
		return nil, errors.Join(fmt.Errorf("%w: another process trains in %s", ErrExists, f), l.Close())
	default:
		return nil, errors.Join(fmt.Errorf("train: run folder: %w", err), l.Close())
	}
}

func (f Folder) settings() string { return filepath.Join(string(f), SettingsFile) }

func (f Folder) taken() error {
	return fmt.Errorf("%w: %s holds a run already: go on with it (--resume), choose another or remove it", ErrExists, f)
}

// Finish writes the summary.
func (f Folder) Finish(s *Summary) error { return WriteJSON(filepath.Join(string(f), SummaryFile), s) }
