package checkpoint_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"zeroshard/checkpoint"
	"zeroshard/checkpoint/crashfs"
)

// contents is a file's, nil where there is none.
func contents(t *testing.T, f checkpoint.FS, path string) []byte {
	t.Helper()
	r, err := f.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	raw, err := io.ReadAll(io.NewSectionReader(r, 0, r.Size()))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// A file under its name is whole, at whatever operation the writer stops or fails; the next one writes it, and nothing is left over.
func TestConsolidateAtEveryPoint(t *testing.T) {
	start := func() *crashfs.FS {
		f := &crashfs.FS{}
		saved(t, f, "c", 1, 2)
		if err := f.MkdirAll("d"); err != nil {
			t.Fatal(err)
		}
		return f.Restart(crashfs.All)
	}
	write := func(f *crashfs.FS) error {
		step, err := checkpoint.NewStore(f, "c").Open(1)
		if err != nil {
			t.Fatal(err)
		}
		return errors.Join(step.Consolidate(f, "d/whole", true), step.Close())
	}
	clean := start()
	if err := write(clean); err != nil {
		t.Fatal(err)
	}
	want, ops := contents(t, clean, "d/whole"), clean.Ops()
	if len(want) == 0 {
		t.Fatal("an empty file")
	}
	for at := 1; at <= len(ops); at += stride() {
		for _, ft := range []struct {
			crashfs.Fault
			err error
		}{{crashfs.Stop, nil}, {crashfs.Fail, syscall.ENOSPC}, {crashfs.Short, syscall.ENOSPC}, {crashfs.Short, nil}} {
			if ft.Fault == crashfs.Short && !strings.HasPrefix(ops[at-1], "write") {
				continue
			}
			for _, loss := range crashfs.Losses() {
				f := start()
				f.At, f.Fault, f.Err = at, ft.Fault, ft.err
				if err := write(f); err == nil {
					t.Fatalf("%s: fault %v %v went unnoticed", ops[at-1], ft.Fault, ft.err)
				}
				f = f.Restart(loss)
				had := contents(t, f, "d/whole")
				if had != nil && !bytes.Equal(had, want) {
					t.Fatalf("%v at operation %d, %s, losing %v: %d bytes of %d under the name", ft.Fault, at, ops[at-1], loss, len(had), len(want))
				}
				if err := write(f); (had == nil) != (err == nil) || had != nil && !errors.Is(err, fs.ErrExist) {
					t.Fatalf("%v at operation %d, %s, losing %v: again: %v", ft.Fault, at, ops[at-1], loss, err)
				}
				names, err := f.List("d")
				if had == nil && (err != nil || !slices.Equal(names, []string{"whole"})) || !bytes.Equal(contents(t, f, "d/whole"), want) {
					t.Fatalf("%v at operation %d, %s, losing %v: at the end %v, %v", ft.Fault, at, ops[at-1], loss, names, err)
				}
			}
		}
	}
}

// What a killed process left beside goes with the next file of that name, and a name that is taken is left alone.
func TestConsolidateOnTheDisk(t *testing.T) {
	dir := t.TempDir()
	step, err := saved(t, checkpoint.OS{}, dir+"/c", 1, 2).Open(1)
	if err != nil {
		t.Fatal(err)
	}
	defer step.Close()
	for _, name := range []string{"out/.whole.tmp-1", "out/.other.tmp-1", "out/folder"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, "whole"), []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := step.Consolidate(checkpoint.OS{}, dir+"/out/whole", true); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]error{"/out/folder": fs.ErrExist, "/out/whole": fs.ErrExist, "/none/whole": fs.ErrNotExist} {
		if err := step.Consolidate(checkpoint.OS{}, dir+path, true); !errors.Is(err, want) || !strings.Contains(err.Error(), dir+path) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if names, err := (checkpoint.OS{}).List(dir + "/out"); err != nil || !slices.Equal(names, []string{".other.tmp-1/", "folder/", "whole"}) {
		t.Errorf("left %v, %v", names, err)
	}
}
