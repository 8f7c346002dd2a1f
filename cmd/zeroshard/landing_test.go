package main

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"zeroshard/models/gpt"
	"zeroshard/train"
)

// An import that did not end is no obstacle to the next one, however it did not end, and what is somebody's is left alone.
func TestImportAgain(t *testing.T) {
	odd(t)
	vocabulary(t, "hf")
	ok(t, strings.Fields("checkpoint import hf --out whole")...)
	want := files(t, "whole")
	for name, left := range map[string]string{
		"nothing": "", "an empty folder": "out", "the folder of steps": "out/checkpoints", "half a step": "out/checkpoints/.step-00000000.tmp/rank-00000.safetensors/x",
		"half a tokenizer": "out/.tokenizer.tmp/x", "the name of a step": "out/checkpoints/.latest.tmp",
	} {
		if left != "" {
			if err := os.MkdirAll(left, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		ok(t, strings.Fields("checkpoint import hf --out out")...)
		if got := files(t, "out"); !slices.Equal(got, want) {
			t.Errorf("after %s: %v", name, got)
		}
		ok(t, strings.Fields("checkpoint verify out")...)
		refused(t, exitUsage, []string{"--out out: the folder is not empty"}, strings.Fields("checkpoint import hf --out out")...)
		remove(t, "out")
	}
	if err := os.CopyFS("out/tokenizer", os.DirFS("whole/tokenizer")); err != nil { // a whole one
		t.Fatal(err)
	}
	ok(t, strings.Fields("checkpoint import hf --out out")...)
	remove(t, "out")
	for name, there := range map[string]string{"a file": "out/file/x", "a run": "out/settings.json", "a step that is not an import's": "out/checkpoints/step-00000003",
		"steps that were set aside": "out/checkpoints/.step-00000003.superseded"} {
		if err := os.MkdirAll(there, 0o755); err != nil {
			t.Fatal(err)
		}
		before := files(t, "out")
		refused(t, exitUsage, []string{"--out out: the folder is not empty"}, strings.Fields("checkpoint import hf --out out")...)
		if after := files(t, "out"); !slices.Equal(before, after) {
			t.Errorf("%s: %v became %v", name, before, after)
		}
		remove(t, "out")
	}
	lock, err := train.Folder("out").Lock()
	if err != nil {
		t.Fatal(err)
	}
	refused(t, exitUsage, []string{"another process"}, strings.Fields("checkpoint import hf --out out")...)
	if err := lock.Close(); err != nil {
		t.Fatal(err)
	}
}

// One that fails leaves what was there.
func TestImportFails(t *testing.T) {
	empty(t)
	full := &os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}
	s := &source{dir: "hf", config: gpt.Config{Layers: 1, Heads: 1, Width: 8, Vocab: 300, Positions: 16}, tokenizer: "words",
		read: func(name string, _ int, _ []float32) error {
			if name == "ln_f.weight" {
				return full
			}
			return nil
		}}
	vocabulary(t, "words")
	for _, made := range []string{"", "out", "out/checkpoints", "out/.tokenizer.tmp"} {
		if made != "" {
			if err := os.MkdirAll(made, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		before := files(t, ".")
		l, err := land("out")
		if err != nil {
			t.Fatal(err)
		}
		if err := l.end(importWeights(s, "out", os.Stderr)); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("%v", err)
		}
		if made == "out/.tokenizer.tmp" { // became the tokenizer
			before = slices.DeleteFunc(before, func(name string) bool { return filepath.Base(name) == ".tokenizer.tmp" })
		}
		if after := files(t, "."); !slices.Equal(before, after) {
			t.Errorf("%v became %v", before, after)
		}
		remove(t, "out")
	}
}
