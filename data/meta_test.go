package data_test

import (
	"errors"
	"strings"
	"testing"

	"zeroshard/data"
)

// prepared is a folder of six tokens to train on and three held out, with a meta.json.
func prepared(t *testing.T, meta string) string {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, "train.bin", []uint16{1, 2, 3, 4, 5, 6})
	write(t, dir, "val.bin", []uint16{7, 8, 9})
	if meta != "" {
		write(t, dir, "meta.json", meta)
	}
	return dir
}

func metaText(tokenizer, sha string, vocab, train, val string) string {
	return `{"format": "zeroshard-tokens-1", "tokenizer": "` + tokenizer + `", "tokenizer_sha256": "` + sha + `", "vocab": ` + vocab +
		`, "train": {"tokens": ` + train + `}, "val": {"tokens": ` + val + `}}`
}

func TestMeta(t *testing.T) {
	gpt2 := prepared(t, metaText("gpt2", "", "200", "6", "3"))
	mine := prepared(t, metaText("mine", "ab12", "300", "6", "3"))
	same := prepared(t, metaText("renamed", "ab12", "300", "6", "3"))
	plain := prepared(t, "")
	for _, c := range []struct {
		name  string
		paths []string
		want  string
	}{
		{"built in", []string{gpt2}, "gpt2"},
		{"from a folder, which is then the data's", []string{mine}, mine},
		{"one vocabulary in two folders", []string{mine, same}, mine},
		{"unknown", []string{plain}, ""},
		{"unknown and known", []string{plain, gpt2}, "gpt2"},
		{"somebody else's meta.json", []string{prepared(t, `{"vocab": 1e9}`)}, ""},
		{"somebody else's, no JSON", []string{prepared(t, `hello`)}, ""},
		{"text", []string{write(t, t.TempDir(), "a.txt", "abcdefgh")}, "bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := data.OpenSet(c.paths, 300, 2)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if s.Tokenizer != c.want {
				t.Errorf("tokenizer %q, want %q", s.Tokenizer, c.want)
			}
		})
	}
}

func TestMetaFaults(t *testing.T) {
	gpt2 := prepared(t, metaText("gpt2", "", "200", "6", "3"))
	for _, c := range []struct {
		name  string
		paths []string
		want  error
		say   string
	}{
		{"vocabulary of another model", []string{prepared(t, metaText("gpt2", "", "50257", "6", "3"))}, data.ErrMismatch, "gpt2's vocabulary of 50257, the model's is 300"},
		{"two tokenizers", []string{gpt2, prepared(t, metaText("bytes", "", "256", "6", "3"))}, data.ErrMismatch, "gpt2's, those of "},
		{"two folders of one name", []string{prepared(t, metaText("a", "1", "9", "6", "3")), prepared(t, metaText("a", "2", "9", "6", "3"))}, data.ErrMismatch, "another vocabulary"},
		{"tokens lost", []string{prepared(t, metaText("gpt2", "", "200", "7", "3"))}, data.ErrCorrupt, "byte 12: 6 tokens, but meta.json beside it counts 7"},
		{"held-out tokens lost", []string{prepared(t, metaText("gpt2", "", "200", "6", "4"))}, data.ErrCorrupt, "val.bin: byte 6: 3 tokens"},
		{"broken", []string{prepared(t, metaText("gpt2", "", "x", "6", "3"))}, data.ErrCorrupt, "meta.json"},
		{"empty", []string{prepared(t, metaText("", "", "200", "6", "3"))}, data.ErrCorrupt, "neither may be empty"},
		{"no vocabulary", []string{prepared(t, metaText("gpt2", "", "0", "6", "3"))}, data.ErrCorrupt, `tokenizer "gpt2" of vocabulary 0: neither may be empty`},
		{"fewer tokens than none", []string{prepared(t, metaText("gpt2", "", "200", "-1", "3"))}, data.ErrCorrupt, "-1 tokens to train on"},
		{"fewer held-out tokens than none", []string{prepared(t, metaText("gpt2", "", "200", "6", "-1"))}, data.ErrCorrupt, "-1 held-out tokens"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := data.OpenSet(c.paths, 300, 2)
			if s != nil || !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.say) {
				t.Errorf("%v\nwant %v, %q", err, c.want, c.say)
			}
		})
	}
}
