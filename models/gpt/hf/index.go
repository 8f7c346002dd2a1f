package hf

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"zeroshard/checkpoint/safetensors"
)

// The names of a folder's weights: one file, or several under an index.
const (
	weightsFile = "model.safetensors"
	indexFile   = "model.safetensors.index.json"
)

// maxText is the most bytes of a JSON file that are read.
const maxText = 100_000_000

// index is model.safetensors.index.json. Its metadata holds sums that nobody needs.
type index struct {
	WeightMap map[string]string `json:"weight_map"` // tensor → file in the same folder
}

// openWeights opens the files of a folder's weights. Where there are both, the single file counts, as in transformers.
func openWeights(dir string) (files []*safetensors.File, err error) {
	one, err := safetensors.Open(filepath.Join(dir, weightsFile))
	switch {
	case err == nil:
		return []*safetensors.File{one}, nil
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("hf: %w", err)
	}
	text, err := readText(filepath.Join(dir, indexFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, withoutWeights(dir)
	}
	if err != nil {
		return nil, err
	}
	shards, err := parseIndex(text)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			closeAll(files)
			files = nil
		}
	}()
	for _, name := range slices.Sorted(maps.Keys(shards)) {
		f, err := safetensors.Open(filepath.Join(dir, name))
		if err != nil {
			return files, fmt.Errorf("hf: %s names %s: %w", indexFile, name, err)
		}
		files = append(files, f)
		if err := agree(f, name, shards[name]); err != nil {
			return files, err
		}
	}
	return files, nil
}

// withoutWeights says what a folder without weights in safetensors has instead.
func withoutWeights(dir string) error {
	for _, other := range []string{"pytorch_model.bin", "pytorch_model.bin.index.json"} {
		if _, err := os.Stat(filepath.Join(dir, other)); err == nil {
			return fmt.Errorf("%w: %s has its weights in %s, a Python pickle, which is not read: load it in transformers and save it again "+
				"with save_pretrained, which writes %s", ErrUnsupported, dir, other, weightsFile)
		}
	}
	return fmt.Errorf("%w: %s has neither %s nor %s", ErrFolder, dir, weightsFile, indexFile)
}

// parseIndex returns the tensors of each file.
func parseIndex(text []byte) (map[string][]string, error) {
	var x index
	if err := json.Unmarshal(text, &x); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrFolder, indexFile, err)
	}
	if len(x.WeightMap) == 0 {
		return nil, fmt.Errorf("%w: %s: weight_map is missing or empty", ErrFolder, indexFile)
	}
	shards := map[string][]string{}
	for _, tensor := range slices.Sorted(maps.Keys(x.WeightMap)) {
		file := x.WeightMap[tensor]
		// One folder holds all, so whoever hands on a folder cannot make this one read another.
		if !filepath.IsLocal(file) || strings.ContainsAny(file, `/\`) || file == "." {
			return nil, fmt.Errorf("%w: %s: tensor %q lies in %q, which is no name of a file in this folder", ErrFolder, indexFile, tensor, file)
		}
		shards[file] = append(shards[file], tensor)
	}
	return shards, nil
}

// agree compares a file's tensors with those that the index says it has.
func agree(f *safetensors.File, name string, listed []string) error {
	var absent, unlisted []string
	for _, tensor := range listed {
		if _, ok := f.Lookup(tensor); !ok {
			absent = append(absent, tensor)
		}
	}
	for _, t := range f.Tensors {
		if _, ok := slices.BinarySearch(listed, t.Name); !ok {
			unlisted = append(unlisted, t.Name)
		}
	}
	var errs []error
	if absent != nil {
		errs = append(errs, fmt.Errorf("%w: %s says that %s has %s: it has not", ErrFolder, indexFile, name, some(absent)))
	}
	if unlisted != nil {
		errs = append(errs, fmt.Errorf("%w: %s has %s, which %s does not say", ErrFolder, name, some(unlisted), indexFile))
	}
	return joined(errs)
}

// some lists names, not more than a reader wants.
func some(names []string) string {
	const most = 6
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

func closeAll(files []*safetensors.File) error {
	var errs []error
	for _, f := range files {
		errs = append(errs, f.Close())
	}
	return errors.Join(errs...)
}

// readText reads a JSON file.
func readText(path string) ([]byte, error) {
	info, err := os.Stat(path) // before it is opened: to open a pipe waits for a writer
	if err != nil {
		return nil, fmt.Errorf("hf: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w: %s is not a regular file", ErrFolder, path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("hf: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxText+1))
	if err != nil {
		return nil, fmt.Errorf("hf: %w", err)
	}
	if len(text) > maxText {
		return nil, fmt.Errorf("%w: %s has more than %d bytes", ErrFolder, path, maxText)
	}
	return text, nil
}
