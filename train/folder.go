package train

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
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
	if _, err := os.Stat(filepath.Join(string(f), SettingsFile)); err == nil {
		return fmt.Errorf("%w: %s holds a run already; choose another --out or remove it", ErrExists, f)
	}
	return nil
}

// Create makes the folder and writes the settings into it.
func (f Folder) Create(settings any) error {
	if err := os.MkdirAll(string(f), 0o755); err != nil {
		return fmt.Errorf("train: run folder: %w", err)
	}
	return WriteJSON(filepath.Join(string(f), SettingsFile), settings)
}

// Finish writes the summary.
func (f Folder) Finish(s *Summary) error { return WriteJSON(filepath.Join(string(f), SummaryFile), s) }
