package train_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"zeroshard/train"
)

func TestFolderClean(t *testing.T) {
	dir := t.TempDir()
	stay := []string{".memory.html", ".settings.json.old", ".x.12", "memory.html", "settings.json.7"}
	for _, name := range append([]string{".settings.json.123456", ".summary.json.1", ".memory.html.99"}, stay...) {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := train.Folder(dir).Clean(); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if err != nil || !slices.Equal(names, stay) {
		t.Errorf("left %v, %v", names, err)
	}
	if err := train.Folder(filepath.Join(dir, "none")).Clean(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
}
