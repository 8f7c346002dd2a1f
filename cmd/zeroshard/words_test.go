package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"zeroshard/checkpoint"
	"zeroshard/models/gpt"
)

// odd makes, in an empty current folder, words (a tokenizer), corpus (texts prepared with it) and hf (a model of its vocabulary), and returns
// the folder's path.
func odd(t *testing.T) string {
	t.Helper()
	dir := empty(t)
	vocabulary(t, "words")
	ok(t, "prepare", documents(t, 12), "-o", "corpus", "--tokenizer", "words", "--quiet")
	if err := os.Rename(folder(t, gpt.Config{Layers: 1, Heads: 1, Width: 8, Vocab: 300, Positions: 16, Bias: true}), "hf"); err != nil {
		t.Fatal(err)
	}
	return dir
}

// trainOdd trains in run.
func trainOdd(t *testing.T, more ...string) outcome {
	t.Helper()
	return ok(t, append(strings.Fields("train --init-from hf --data corpus --steps 2 --save-every 1 --warmup 1 --seed 7 --out run --quiet"), more...)...)
}

func remove(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if err := os.RemoveAll(name); err != nil {
			t.Fatal(err)
		}
	}
}

func replace(t *testing.T, path, old, new string) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(raw), old) {
		t.Fatalf("%v: no %s in %s", err, old, path)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(raw), old, new, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
}

// A run has its tokenizer with it: it is read from any folder, wherever the run has been moved, though the corpus is gone and another tokenizer
// has its name.
func TestTheTokenizerGoesWithTheRun(t *testing.T) {
	dir := odd(t)
	trainOdd(t, "--stop-at", "1")
	want := generate(t, "--from", "run", "--prompt", "é", "--max-tokens", "9", "--tokenizer", "words").stdout
	m, err := checkpoint.ReadManifest(checkpoint.OS{}, "run/checkpoints/step-00000001")
	if err != nil || m.Data.Tokenizer != "tokenizer" || len(m.Data.TokenizerSHA256) != 64 {
		t.Fatalf("%+v, %v", m.Data, err)
	}
	elsewhere := empty(t)
	ok(t, strings.Fields("train --resume --quiet --out "+dir+"/run")...) // its data too, which were named from another folder
	if err := os.Rename(dir+"/run", "moved"); err != nil {
		t.Fatal(err)
	}
	remove(t, dir+"/corpus", dir+"/words", dir+"/hf")
	vocabulary(t, "corpus") // of this name, but not that one
	replace(t, "corpus/vocab.json", `"a": 97`, `"a": 98`)
	replace(t, "corpus/vocab.json", `"b": 98`, `"b": 97`)
	for _, at := range []string{".", "moved", "moved/checkpoints"} {
		t.Chdir(filepath.Join(elsewhere, at))
		for _, from := range []string{"moved", "moved/checkpoints", "moved/checkpoints/step-00000001"} {
			rel, err := filepath.Rel(at, from)
			if err != nil {
				t.Fatal(err)
			}
			got := generate(t, "--from", rel, "--prompt", "é", "--max-tokens", "9")
			if strings.HasSuffix(from, "1") && got.stdout != want || !strings.HasPrefix(got.stdout, "é") {
				t.Errorf("at %s, from %s: %q, want %q", at, rel, got.stdout, want)
			}
		}
	}
	t.Chdir(elsewhere)
	again, err := checkpoint.ReadManifest(checkpoint.OS{}, "moved/checkpoints/step-00000002")
	if err != nil || again.Data.TokenizerSHA256 != m.Data.TokenizerSHA256 || again.Data.Tokenizer != "tokenizer" {
		t.Errorf("after a resume: %+v, %v", again.Data, err)
	}
	if names := files(t, "moved/tokenizer"); strings.Join(names, " ") != "merges.txt special_tokens_map.json tokenizer_config.json vocab.json" {
		t.Errorf("kept: %v", names)
	}
}

// A tokenizer that is gone, or another, is never replaced by a guess.
func TestTheTokenizerThatIsNotThere(t *testing.T) {
	odd(t)
	trainOdd(t)
	for _, c := range []struct {
		name, says string
		spoil      func()
	}{
		{"another", "its files are not those that it was trained with", func() { replace(t, "run/tokenizer/vocab.json", `"a": 97`, `"a":  97`) }},
		{"a part of it", "merges.txt", func() { remove(t, "run/tokenizer/merges.txt") }},
		{"none", "run/tokenizer", func() { remove(t, "run/tokenizer") }},
	} {
		c.spoil()
		says := []string{"the saved step in run names the tokenizer run/tokenizer", c.says, "--tokenizer bytes, gpt2 or a folder"}
		for _, line := range []string{"generate --from run --prompt x", "checkpoint export run --hf out", "eval --from run --data words/vocab.json"} {
			got := refused(t, exitFile, says, strings.Fields(line)...)
			if strings.Count(got.stderr, "\n") != 1 {
				t.Errorf("%s: %s", c.name, got.stderr)
			}
		}
		if got := ok(t, "eval", "--from", "run", "--data", "corpus"); strings.Contains(got.stdout, "bits/byte") || !strings.Contains(got.stderr, "bits a byte are not counted: tokenizer") {
			t.Errorf("%s: %+v", c.name, got)
		}
		if got := ok(t, strings.Fields("checkpoint export run --hf none --tokenizer none")...); strings.Contains(got.stderr, "tokenizer") {
			t.Error(got.stderr)
		}
		ok(t, strings.Fields("checkpoint export run --hf named --tokenizer words")...)
		if _, err := os.Stat("none/vocab.json"); err == nil {
			t.Error("none: a tokenizer was written")
		}
		if _, err := os.Stat("named/vocab.json"); err != nil {
			t.Error(err)
		}
		remove(t, "none", "named")
	}
}

func TestTheTokenizerOfTheCorpus(t *testing.T) {
	t.Run("was changed", func(t *testing.T) {
		odd(t)
		replace(t, "corpus/vocab.json", `"a": 97`, `"a":  97`)
		refused(t, exitFile, []string{"the tokenizer's files in corpus are not those that gave the ids"}, strings.Fields("train --init-from hf --data corpus --out run --steps 1")...)
		if _, err := os.Stat("run"); err == nil {
			t.Error("a run was begun")
		}
	})
	t.Run("is gone", func(t *testing.T) {
		odd(t)
		remove(t, "corpus/vocab.json", "corpus/merges.txt")
		if got := trainOdd(t); !strings.Contains(got.stderr, "the tokenizer of corpus cannot be kept with the run") || strings.Count(got.stderr, "\n") != 1 {
			t.Errorf("%q", got.stderr)
		}
		refused(t, exitFile, []string{"names the tokenizer run/tokenizer"}, strings.Fields("generate --from run --prompt x")...)
		generate(t, strings.Fields("--from run --prompt x --max-tokens 3 --tokenizer words")...)
	})
	t.Run("of token files that do not say is that of the weights", func(t *testing.T) {
		odd(t)
		vocabulary(t, "hf")
		trainOdd(t, "--data", "corpus/train.bin,corpus/val.bin")
		remove(t, "corpus", "hf", "words")
		generate(t, strings.Fields("--from run --prompt x --max-tokens 3")...)
	})
	t.Run("is not that of another run's steps", func(t *testing.T) {
		odd(t)
		vocabulary(t, "run/tokenizer")
		replace(t, "run/tokenizer/vocab.json", `"a": 97`, `"a":  97`)
		refused(t, exitUsage, []string{"run/tokenizer is another tokenizer's folder"}, strings.Fields("train --init-from hf --data corpus --out run --steps 1")...)
		if got := files(t, "run"); len(got) != 5 {
			t.Errorf("left %v", got)
		}
	})
	t.Run("is put where a killed run began to", func(t *testing.T) {
		odd(t)
		vocabulary(t, "run/.tokenizer.tmp")
		remove(t, "run/.tokenizer.tmp/vocab.json")
		trainOdd(t)
		generate(t, strings.Fields("--from run --prompt x --max-tokens 3")...)
		if _, err := os.Stat("run/.tokenizer.tmp"); err == nil {
			t.Error("what the killed run left is there")
		}
	})
}

// What import makes does not need the folder that it was made of, and steps from before tokenizers were kept are read by name only.
func TestTheTokenizerOfImportedWeights(t *testing.T) {
	odd(t)
	vocabulary(t, "hf")
	ok(t, strings.Fields("checkpoint import hf --out imported")...)
	want := generate(t, strings.Fields("--from hf --prompt x --max-tokens 5")...).stdout
	if err := os.WriteFile("hf/tokenizer_config.json", []byte(`{"tokenizer_class": "CLIPTokenizer"}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := ok(t, strings.Fields("checkpoint import hf --out other")...); !strings.Contains(got.stderr, "the tokenizer of hf cannot be kept with the run") {
		t.Errorf("%q", got.stderr)
	}
	remove(t, "hf")
	if got := generate(t, strings.Fields("--from imported --prompt x --max-tokens 5")...).stdout; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	refused(t, exitFile, []string{"other names the tokenizer tokenizer: its files could not be kept"}, strings.Fields("generate --from other --prompt x")...)

	s := &source{dir: "old", tokenizer: "words", saved: &checkpoint.Saved{}, config: gpt.Config{Vocab: 300}}
	if _, err := s.words(""); err == nil || exitCode(err) != exitFile || !strings.Contains(err.Error(), "old names the tokenizer words: a path from where it was trained") {
		t.Errorf("a relative name: %v", err)
	}
	if _, err := s.words("words/."); err != nil {
		t.Errorf("named: %v", err)
	}
	var err error
	if s.tokenizer, err = filepath.Abs("words"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.words(""); err != nil {
		t.Errorf("an absolute name: %v", err)
	}
}
