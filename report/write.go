package report

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"zeroshard/report/web"
)

// Names of what a memory report consists of.
const (
	PageFile   = "memory.html"
	MemoryFile = "memory.json"
	TraceFile  = "trace.json"
)

// PagePath is where WriteDir puts the page.
func PagePath(dir string) string { return filepath.Join(dir, PageFile) }

// WriteDir writes the report into dir, which is made if need be: the page, its figures, and the trace of the same steps.
func (b *Book) WriteDir(dir string, about Subject, p Process) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	r := b.Report(about, p)
	return errors.Join(
		write(filepath.Join(dir, MemoryFile), r.writeJSON),
		write(filepath.Join(dir, TraceFile), b.WriteTrace),
		write(PagePath(dir), func(w io.Writer) error { return web.WriteReport(w, about.Title, r) }),
	)
}

func (r *Report) writeJSON(w io.Writer) error {
	if err := json.NewEncoder(w).Encode(r); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

// write writes beside path and renames, so that a reader never sees a part of a file.
func write(path string, f func(io.Writer) error) (err error) {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		var at *os.PathError // of a name that nobody chose
		if errors.As(err, &at) {
			err = &os.PathError{Op: "write", Path: path, Err: at.Err}
		}
		return fmt.Errorf("report: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("report: %s: %w", path, err), os.Remove(file.Name()))
		}
	}()
	w := bufio.NewWriter(file)
	if err := errors.Join(f(w), w.Flush(), file.Chmod(0o644), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}
