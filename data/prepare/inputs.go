package prepare

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Format is how inputs hold documents.
type Format int

const (
	// Auto goes by the name: JSONL for .jsonl, .ndjson and .jsonl.gz, else Text.
	Auto Format = iota
	// Text is a document a file.
	Text
	// JSONL is a document a line: an object with the text in one field.
	JSONL
)

// kind is how one file is read.
type kind int

const (
	plain kind = iota
	lines
	gzipLines
)

// stdinName is the input that is no file.
const stdinName = "-"

// input is one file.
type input struct {
	path    string
	kind    kind
	size    int64  // bytes, 0 if not known
	spooled string // the file that holds the standard input
}

// name is the file to open.
func (in *input) name() string {
	if in.spooled != "" {
		return in.spooled
	}
	return in.path
}

// inputs is what the arguments stand for.
type inputs struct {
	files   []input
	skipped int
	total   int64 // bytes, 0 if not known
}

// find replaces folders by the files in them.
func find(paths []string, format Format, out string) (*inputs, error) {
	all, unknown := &inputs{}, false
	for _, path := range paths {
		if path == stdinName {
			if unknown {
				return nil, optionf("the standard input (-) twice")
			}
			unknown = true
			in := input{path: path}
			if format == JSONL {
				in.kind = lines
			}
			all.files = append(all.files, in)
			continue
		}
		info, err := os.Stat(path)
		switch {
		case err != nil:
			err = fmt.Errorf("prepare: %w", err)
		case info.IsDir():
			err = all.walk(path, format, out)
		default:
			err = all.add(path, info, format)
		}
		if err != nil {
			return nil, err
		}
	}
	if len(all.files) == 0 {
		return nil, fmt.Errorf("%w: no file among the inputs (%d entries skipped: hidden, or no regular file)", ErrEmpty, all.skipped)
	}
	for _, f := range all.files {
		all.total += f.size
	}
	if unknown {
		all.total = 0
	}
	return all, nil
}

func (all *inputs) add(path string, info fs.FileInfo, format Format) error {
	if !info.Mode().IsRegular() {
		return fmt.Errorf("prepare: %w", &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("no regular file (%s)", info.Mode().Type())})
	}
	in := input{path: path, size: info.Size()}
	name := strings.ToLower(filepath.Base(path))
	unzipped, zipped := strings.CutSuffix(name, ".gz")
	if ext := filepath.Ext(unzipped); format == JSONL || format == Auto && (ext == ".jsonl" || ext == ".ndjson") {
		in.kind = lines
	}
	switch {
	case zipped && in.kind == lines:
		in.kind = gzipLines
	case zipped:
		return &InputError{Path: path, Offset: -1, Reason: "a compressed text: unpack it, or pipe it in (gzip -dc FILE | zeroshard prepare -)"}
	}
	all.files = append(all.files, in)
	return nil
}

// walk adds a folder's files in the order of their names.
func (all *inputs) walk(dir string, format Format, out string) error {
	if within(out, dir) {
		return optionf("the output folder %s lies in %s, whose files are all read: write elsewhere", out, dir)
	}
	root, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return fmt.Errorf("prepare: %w", err)
	}
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return fmt.Errorf("prepare: %w", err)
		case path == root:
			return nil
		case strings.HasPrefix(d.Name(), "."):
			all.skipped++
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir():
			return nil
		case !d.Type().IsRegular():
			all.skipped++
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return fmt.Errorf("prepare: %w", err)
		}
		return all.add(path, info, format)
	})
}

// within says that a path is a folder or lies in it.
func within(path, dir string) bool {
	rel, err := filepath.Rel(real(dir), real(path))
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// real is the path without links, as far as it exists.
func real(path string) string {
	abs, err := filepath.Abs(path)
	if err != nil {
		return path
	}
	if r, err := filepath.EvalSymlinks(abs); err == nil {
		return r
	}
	if parent := filepath.Dir(abs); parent != abs {
		return filepath.Join(real(parent), filepath.Base(abs))
	}
	return abs
}
