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
	claim, err := os.OpenFile(f.settings(), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return f.taken()
	}
	if err != nil {
		return fmt.Errorf("train: run folder: %w", err)
	}
	return errors.Join(claim.Close(), WriteJSON(f.settings(), settings))
}

func (f Folder) settings() string { return filepath.Join(string(f), SettingsFile) }

func (f Folder) taken() error {
	return fmt.Errorf("%w: %s holds a run already; choose another or remove it", ErrExists, f)
}

// Finish writes the summary.
func (f Folder) Finish(s *Summary) error { return WriteJSON(filepath.Join(string(f), SummaryFile), s) }
