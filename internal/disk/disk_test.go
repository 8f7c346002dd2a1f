package disk_test

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"zeroshard/internal/disk"
)

func TestSyncDir(t *testing.T) {
	dir := t.TempDir()
	if err := disk.SyncDir(dir); err != nil {
		t.Error(err)
	}
	if err := disk.SyncDir(filepath.Join(dir, "absent")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a folder that is not there: %v", err)
	}
}
