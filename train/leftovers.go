package train

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

// beside is the name of a file that is written beside settings.json, memory.html and their like, until it has all in it.
var beside = regexp.MustCompile(`^\.[a-z]+\.(json|html)\.[0-9]+$`)

// Clean removes the files beside others that a killed process left in the folder. Lock it first: a living one may be writing them.
func (f Folder) Clean() error {
	entries, err := os.ReadDir(string(f))
	for _, e := range entries {
		if err == nil && e.Type().IsRegular() && beside.MatchString(e.Name()) {
			err = os.Remove(filepath.Join(string(f), e.Name()))
		}
	}
	if err != nil {
		return fmt.Errorf("train: run folder: %w", err)
	}
	return nil
}
