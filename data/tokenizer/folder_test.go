package tokenizer_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"zeroshard/data/tokenizer"
)

// small is a vocabulary whose ids are not in the order of merges: bytes get ids from the end.
func small(t *testing.T) (ids map[string]int) {
	t.Helper()
	files := must(tokenizer.Files(tokenizer.Bytes()))(t)
	if err := json.Unmarshal(files["vocab.json"], &ids); err != nil {
		t.Fatal(err)
	}
	for name, b := range ids {
		ids[name] = 300 - b
	}
	maps.Copy(ids, map[string]int{"ab": 2, "abc": 1, "Ġab": 0, "bc": 3, "<|endoftext|>": 4})
	return ids
}

const smallMerges = "#version: 0.2\nb c\na b\nĠ ab\nab c\n"

func folder(t *testing.T, ids map[string]int, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "small")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{"merges.txt": smallMerges}
	if ids != nil {
		all["vocab.json"] = string(must(json.Marshal(ids))(t))
	}
	maps.Copy(all, files)
	for name, text := range all {
		if text == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestOpen(t *testing.T) {
	dir := folder(t, small(t), map[string]string{"tokenizer_config.json": `{"eos_token": {"content": "<eos> x"}, "tokenizer_class": "GPT2TokenizerFast",
		"added_tokens_decoder": {"302": {"content": "<eos> x"}, "304": {"content": "<pad>"}}}`, "added_tokens.json": `{"<eos> x": 302}`})
	tok := must(tokenizer.Open(dir))(t)
	if id, ok := tok.EndOfText(); tok.Vocab() != 305 || id != 302 || !ok || tok.Name() != "small" {
		t.Errorf("%s: vocabulary %d, end of text %d, %v", tok.Name(), tok.Vocab(), id, ok)
	}
	for text, want := range map[string][]int32{
		"abc":     {300 - 'a', 3}, // bc is merged first, and a bc is no pair
		"ab ab":   {2, 0},         // 2 is ab, 0 is " ab"
		"abab":    {2, 2},         //
		"xc":      {300 - 'x', 300 - 'c'},
		"<eos> x": {300 - '<', 300 - 'e', 300 - 'o', 300 - 's', 300 - '>', 300 - ' ', 300 - 'x'},
	} {
		if got := tok.Encode(nil, text); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
	for id, want := range map[int32]string{0: " ab", 302: "<eos> x", 304: "<pad>", 300: "\x00", 45: "\xff"} {
		if got := must(tok.Token(id))(t); string(got) != want {
			t.Errorf("token %d is %q, want %q", id, got, want)
		}
	}
	if _, err := tok.Token(303); !errors.Is(err, tokenizer.ErrID) {
		t.Errorf("a hole: %v", err)
	}
	// A folder is saved as it is.
	to := filepath.Join(t.TempDir(), "a", "copy")
	if err := tokenizer.Save(to, tok); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"vocab.json", "merges.txt", "tokenizer_config.json", "added_tokens.json"} {
		if a, b := must(os.ReadFile(filepath.Join(dir, name)))(t), must(os.ReadFile(filepath.Join(to, name)))(t); string(a) != string(b) {
			t.Errorf("%s changed", name)
		}
	}
}

func TestOpenEndOfText(t *testing.T) {
	for config, want := range map[string]int32{"": 4, `{"eos_token": null}`: 4, `{"eos_token": "abc"}`: 1} {
		merges := smallMerges
		if want == 1 {
			merges = "b c\n" // a special token comes from no merge
		}
		tok := must(tokenizer.Open(folder(t, small(t), map[string]string{"special_tokens_map.json": config, "merges.txt": merges})))(t)
		if id, ok := tok.EndOfText(); id != want || !ok {
			t.Errorf("%s: %d, %v, want %d", config, id, ok, want)
		}
	}
}

func TestOpenFaults(t *testing.T) {
	without := func(name string) map[string]int { ids := small(t); delete(ids, name); return ids }
	with := func(name string, id int) map[string]int { ids := small(t); ids[name] = id; return ids }
	for _, c := range []struct {
		name  string
		ids   map[string]int
		files map[string]string
		say   string
	}{
		{"no vocabulary", nil, nil, "vocab.json"},
		{"no merges", small(t), map[string]string{"merges.txt": ""}, "merges.txt"},
		{"not JSON", nil, map[string]string{"vocab.json": "{"}, "want one object of tokens and their ids"},
		{"not ids", nil, map[string]string{"vocab.json": `{"a": 1.5}`}, "vocab.json"},
		{"negative id", with("x", -1), nil, `id -1 of token "x"`},
		{"huge id", with("x", 1<<40), nil, `id 1099511627776 of token "x"`},
		{"id twice", with("x", 2), nil, "id 2 is both"},
		{"byte missing", without("ć"), nil, `no token for byte 0x07, which is written "ć"`},
		{"merge of three", small(t), map[string]string{"merges.txt": "a b c\n"}, "line 1"},
		{"merge of one", small(t), map[string]string{"merges.txt": "#version: 0.2\nab\n"}, "line 2"},
		{"merge of what is not there", small(t), map[string]string{"merges.txt": "a b\nc c\n"}, `line 2: token "cc" has no id`},
		{"merge to a special token", small(t), map[string]string{"special_tokens_map.json": `{"eos_token": "abc"}`}, "line 5: \"abc\" is a special token"},
		{"unknown end", small(t), map[string]string{"special_tokens_map.json": `{"eos_token": "<end>"}`}, `"<end>" has no id`},
		{"other class", small(t), map[string]string{"tokenizer_config.json": `{"tokenizer_class": "CLIPTokenizer"}`}, "tokenizer_class CLIPTokenizer"},
		{"prefix", small(t), map[string]string{"tokenizer_config.json": `{"add_prefix_space": true}`}, "add_prefix_space"},
		{"broken configuration", small(t), map[string]string{"tokenizer_config.json": `[`}, "tokenizer_config.json"},
		{"added twice", small(t), map[string]string{"added_tokens.json": `{"ab": 77}`}, `added_tokens.json: token "ab" has ids 2 and 77`},
		{"added with a bad id", small(t), map[string]string{"added_tokens.json": `{"<x>": -1}`, "tokenizer_config.json": `{}`}, `added_tokens.json: id -1 of token "<x>"`},
		{"added by the configuration with a bad id", small(t), map[string]string{"added_tokens.json": `{}`, "tokenizer_config.json": `{"added_tokens_decoder": {"-1": {"content": "<x>"}}}`},
			`tokenizer_config.json: id -1 of token "<x>"`},
		{"added with two ids", small(t), map[string]string{"added_tokens.json": `{"<x>": 302}`, "tokenizer_config.json": `{"added_tokens_decoder": {"303": {"content": "<x>"}}}`},
			`tokenizer_config.json: token "<x>" has ids 302 and 303`},
		{"added with half an id", small(t), map[string]string{"tokenizer_config.json": `{"added_tokens_decoder": {"303x": {"content": "<x>"}}}`}, `"303x" is no id`},
		{"added without id", small(t), map[string]string{"tokenizer_config.json": `{"added_tokens_decoder": {"x": {"content": "y"}}}`}, `"x" is no id`},
	} {
		t.Run(c.name, func(t *testing.T) {
			tok, err := tokenizer.Open(folder(t, c.ids, c.files))
			if tok != nil || !errors.Is(err, tokenizer.ErrFolder) || !strings.Contains(err.Error(), c.say) {
				t.Errorf("%v\nwant %q", err, c.say)
			}
		})
	}
	if _, err := tokenizer.Open(filepath.Join(t.TempDir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
}

// wholeText is the small vocabulary as one tokenizer.json, with some text replaced.
func wholeText(t *testing.T, merges, old, new string) string {
	t.Helper()
	text := `{"added_tokens": [{"id": 302, "content": "<eos> x", "special": true}], "normalizer": null,
		"pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
		"model": {"type": "BPE", "dropout": null, "ignore_merges": false, "vocab": ` + string(must(json.Marshal(small(t)))(t)) + `, "merges": ` + merges + `}}`
	if !strings.Contains(text, old) {
		t.Fatalf("no %s", old)
	}
	return strings.Replace(text, old, new, 1)
}

func TestOpenWhole(t *testing.T) {
	byFiles := must(tokenizer.Open(folder(t, small(t), nil)))(t)
	for _, merges := range []string{`["b c", "a b", "Ġ ab", "ab c"]`, `[["b", "c"], ["a", "b"], ["Ġ", "ab"], ["ab", "c"]]`} {
		dir := folder(t, nil, map[string]string{"merges.txt": "", "tokenizer.json": wholeText(t, merges, "", ""), "tokenizer_config.json": `{"eos_token": "<eos> x"}`})
		tok := must(tokenizer.Open(dir))(t)
		if id, ok := tok.EndOfText(); tok.Vocab() != 303 || id != 302 || !ok {
			t.Errorf("vocabulary %d, end of text %d, %v", tok.Vocab(), id, ok)
		}
		for _, text := range []string{"abc", "ab ab", "abab bc", "<eos> x", "é\x00"} {
			if got, want := tok.Encode(nil, text), byFiles.Encode(nil, text); !slices.Equal(got, want) {
				t.Errorf("%q: %v, want %v", text, got, want)
			}
		}
		if files := must(tokenizer.Files(tok))(t); len(files) != 2 || files["tokenizer.json"] == nil {
			t.Errorf("%d files", len(files))
		}
	}
}

func TestOpenWholeFaults(t *testing.T) {
	for _, c := range []struct{ old, new, say string }{
		{`"BPE"`, `"WordPiece"`, `model type "WordPiece"`},
		{`"normalizer": null`, `"normalizer": {"type": "NFC"}`, "a normalizer (NFC)"},
		{`"type": "ByteLevel"`, `"type": "Sequence"`, "not ByteLevel alone"},
		{`"add_prefix_space": false`, `"add_prefix_space": true`, "add_prefix_space"},
		{`"use_regex": true`, `"use_regex": false`, "use_regex"},
		{`"dropout": null`, `"dropout": 0.1`, "dropout"},
		{`"dropout": null`, `"end_of_word_suffix": "</w>"`, "suffix"},
		{`"dropout": null`, `"byte_fallback": true`, "byte_fallback"},
		{`"ignore_merges": false`, `"ignore_merges": true`, "ignore_merges"},
		{`"a b"`, `"a"`, `merge 0: "a": want two tokens`},
		{`"a b"`, `["a"]`, `merge 0: ["a"]: want two tokens`},
		{`"a b"`, `"a Q Q"`, "merge 0"},
		{`"a b"`, `"Q Q"`, `merge 0: token "QQ" has no id`},
		{`"id": 302`, `"id": -2`, `id -2 of token "<eos> x"`},
		{`"id": 302`, `"id": 1`, "id 1 is both"},
		{`"model": {`, `"model": [`, "tokenizer.json"},
	} {
		t.Run(c.new, func(t *testing.T) {
			dir := folder(t, nil, map[string]string{"merges.txt": "", "tokenizer.json": wholeText(t, `["a b"]`, c.old, c.new)})
			if tok, err := tokenizer.Open(dir); tok != nil || !errors.Is(err, tokenizer.ErrFolder) || !strings.Contains(err.Error(), c.say) {
				t.Errorf("%v\nwant %q", err, c.say)
			}
		})
	}
}
