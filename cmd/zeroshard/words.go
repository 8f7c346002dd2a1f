package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"zeroshard/checkpoint"
	"zeroshard/data/tokenizer"
)

// keptWords is the tokenizer that the steps of a run name, in the manifests' words.
type keptWords struct {
	name, sha256 string
	files        map[string][]byte // for the run's folder: nil where the tokenizer is built in, or in place
}

// keepWords is how a run keeps a tokenizer that tokenizer.Named finds: a folder's files go with the run, for the folder may be gone, or be
// another, where its steps are read. The files must be those of sha256, "" for any.
func keepWords(name, sha256 string) (keptWords, error) {
	if name == "" || isBuiltIn(name) {
		return keptWords{name: name}, nil
	}
	files, err := wordsFiles(name)
	if err != nil {
		return keptWords{name: checkpoint.TokenizerFolder, sha256: sha256}, err
	}
	w := keptWords{checkpoint.TokenizerFolder, tokenizer.SHA256(files), files}
	if sha256 != "" && w.sha256 != sha256 {
		return w, fmt.Errorf("%w: the tokenizer's files in %s are not those that gave the ids, they were changed: put them back", tokenizer.ErrFolder, name)
	}
	return w, nil
}

func wordsFiles(dir string) (map[string][]byte, error) {
	t, err := tokenizer.Open(dir)
	if err != nil {
		return nil, err
	}
	return tokenizer.Files(t)
}

// stands reports whether the files are in the run's folder already. The error says that others are, which steps may need.
func (w *keptWords) stands(run string) (bool, error) {
	dir := filepath.Join(run, checkpoint.TokenizerFolder)
	if _, err := os.Lstat(dir); w.files == nil || errors.Is(err, fs.ErrNotExist) {
		return w.files == nil, nil
	}
	files, err := wordsFiles(dir)
	if err == nil && tokenizer.SHA256(files) == w.sha256 {
		return true, nil
	}
	return false, usagef("%s is another tokenizer's folder: choose another run folder, or remove it if no step in %s needs it", dir, run)
}

// put writes the files into the run's folder, all or none.
func (w *keptWords) put(run string) error {
	if there, err := w.stands(run); there || err != nil {
		return err
	}
	var disk checkpoint.OS
	beside := filepath.Join(run, "."+checkpoint.TokenizerFolder+".tmp")
	if err := disk.RemoveAll(beside); err != nil {
		return err
	}
	if err := disk.MkdirAll(beside); err != nil {
		return err
	}
	for name, text := range w.files {
		f, err := disk.Create(filepath.Join(beside, name))
		if err != nil {
			return err
		}
		_, err = f.Write(text)
		if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
			return errors.Join(err, disk.RemoveAll(beside))
		}
	}
	if err := disk.SyncDir(beside); err != nil {
		return err
	}
	if err := disk.Rename(beside, filepath.Join(run, checkpoint.TokenizerFolder)); err != nil {
		return err
	}
	return disk.SyncDir(run)
}

// findWords finds the tokenizer of the run's steps: that of the step that it goes on from, else of the corpus, else of the weights that it starts from.
func (r *run) findWords() (err error) {
	w, from, where := &r.output.words, r.saves.from, ""
	switch name := r.corpus.Tokenizer; {
	case from != nil && from.Data.TokenizerSHA256 != "":
		*w = keptWords{name: from.Data.Tokenizer, sha256: from.Data.TokenizerSHA256}
		return nil
	case name != "":
		where = name
		*w, err = keepWords(name, r.corpus.TokenizerSHA256)
	case r.saves.init != nil:
		where = r.saves.initFrom
		*w, err = keepWords(r.saves.init.tokenizer, r.saves.init.sha256)
	case from != nil:
		w.name = from.Data.Tokenizer
	}
	if err = w.tell(r.warnings, where, err); err != nil || r.output.out == "" {
		return err
	}
	_, err = w.stands(r.output.out)
	return err
}

// tell makes a note of keepWords' error where it only says that there are no files to keep: that hinders nobody from training, but who reads
// the steps has to name the tokenizer.
func (w *keptWords) tell(to io.Writer, where string, err error) error {
	if err == nil || w.files != nil {
		return err
	}
	fmt.Fprintf(to, "note       the tokenizer of %s cannot be kept with the run, who reads its steps has to name it (--tokenizer): %v\n", where, err)
	return nil
}

// recorded is the tokenizer that a saved step names. What is not the one that it was trained with is refused.
func (s *source) recorded() (tokenizer.Tokenizer, error) {
	var why error
	switch files, err := wordsFiles(s.tokenizer); {
	case s.sha256 == "" && s.tokenizer == checkpoint.TokenizerFolder:
		why = errors.New("its files could not be kept when it was saved")
	case s.sha256 == "" && !filepath.IsAbs(s.tokenizer):
		why = errors.New("a path from where it was trained")
	case err != nil:
		why = err
	case s.sha256 != "" && tokenizer.SHA256(files) != s.sha256:
		why = errors.New("its files are not those that it was trained with")
	default:
		return tokenizer.Open(s.tokenizer)
	}
	return nil, fmt.Errorf("%w: the saved step in %s names the tokenizer %s: %w; put it back, or name it: --tokenizer bytes, gpt2 or a folder with vocab.json and merges.txt",
		tokenizer.ErrFolder, s.dir, s.tokenizer, why)
}

// builtIn are the tokenizers that need no folder.
var builtIn = []string{"bytes", "gpt2"}

func isBuiltIn(name string) bool { return slices.Contains(builtIn, name) }
