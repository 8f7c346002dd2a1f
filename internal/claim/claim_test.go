package claim_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"zeroshard/internal/claim"
)

func names(t *testing.T, dir string) (out []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// Of the folders beside a name those without an owner go, with what is in them, and nothing else does.
func TestBesideRemovesWhatNobodyHolds(t *testing.T) {
	dir := t.TempDir()
	living, err := claim.Beside(filepath.Join(dir, "a"))
	if err != nil {
		t.Fatal(err)
	}
	defer living.Close()
	for _, name := range []string{".a.tmp-2/inside", ".a.tmp-17", ".a.tmp-x", ".a.tmp-", ".b.tmp-1", "a.tmp-1", ".a.tmp-3x"} {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, ".a.tmp-5"), nil, 0o600); err != nil { // nobody's folder
		t.Fatal(err)
	}
	next, err := claim.Beside(filepath.Join(dir, "a"))
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	if living.Path != filepath.Join(dir, ".a.tmp-1") || next.Path != filepath.Join(dir, ".a.tmp-2") {
		t.Errorf("%s and %s", living.Path, next.Path)
	}
	want := []string{".a.tmp-", ".a.tmp-1", ".a.tmp-2", ".a.tmp-3x", ".a.tmp-5", ".a.tmp-x", ".b.tmp-1", "a.tmp-1"}
	if got := names(t, dir); !slices.Equal(got, want) {
		t.Errorf("left %v, want %v", got, want)
	}
	if inside := names(t, next.Path); inside != nil {
		t.Errorf("a new folder holds %v", inside)
	}
}

// Many at a time get a folder each, and keep it while others sweep.
func TestBesideIsOnesOwn(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 50 {
				f, err := claim.Beside(filepath.Join(dir, "a"))
				if err != nil {
					t.Error(err)
					return
				}
				mine := filepath.Join(f.Path, "mine")
				w, err := os.OpenFile(mine, os.O_CREATE|os.O_EXCL, 0o600)
				if err != nil {
					t.Error(err)
					return
				}
				_, err = os.Stat(mine)
				if err := errors.Join(w.Close(), err, os.RemoveAll(f.Path), f.Close()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if left := names(t, dir); left != nil {
		t.Errorf("left %v", left)
	}
}

func TestTake(t *testing.T) {
	dir := t.TempDir()
	var held [3]*os.File
	for i := range held {
		f, err := os.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		held[i] = f
	}
	if err := claim.Take(held[0]); err != nil {
		t.Skip(err)
	}
	if err := claim.Take(held[1]); !errors.Is(err, claim.ErrTaken) {
		t.Errorf("taken twice: %v", err)
	}
	held[0].Close()
	if err := claim.Take(held[2]); err != nil {
		t.Errorf("after it was closed: %v", err)
	}
}

func TestBesideFaults(t *testing.T) {
	if f, err := claim.Beside(filepath.Join(t.TempDir(), "none", "a")); f != nil || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v, %v", f, err)
	}
}
