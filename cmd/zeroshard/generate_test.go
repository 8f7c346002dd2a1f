package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"zeroshard/data/tokenizer"
	"zeroshard/models/gpt"
	"zeroshard/models/gpt/hf"
	"zeroshard/prng"
	"zeroshard/shard"
)

// folder writes a Hugging Face folder of a model with wild weights, so that it writes all kinds of bytes.
func folder(t *testing.T, cfg gpt.Config) string {
	t.Helper()
	m, err := gpt.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	params := map[string]shard.Param{}
	for _, f := range m.Flats() {
		for _, p := range f.Params {
			params[p.Name] = p
		}
	}
	dir := filepath.Join(t.TempDir(), "model")
	err = hf.Write(dir, hf.Export{Config: cfg}, func(name string, lo int, dst []float32) error {
		m.Init(prng.New(3), params[name], lo, dst)
		for i := range dst {
			dst[i] *= 8
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// byteModel is small and knows bytes.
func byteModel(t *testing.T) string {
	return folder(t, gpt.Config{Layers: 2, Heads: 2, Width: 16, Vocab: 256, Positions: 24, Bias: true})
}

func generate(t *testing.T, args ...string) outcome {
	t.Helper()
	o := execute(append([]string{"generate"}, args...)...)
	if o.code != 0 {
		t.Fatalf("exit code %d: %s", o.code, o.stderr)
	}
	return o
}

// records runs generate --json.
func records(t *testing.T, args ...string) (list []record) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(generate(t, append(args, "--json")...).stdout))
	for d.More() {
		var r record
		if err := d.Decode(&r); err != nil {
			t.Fatal(err)
		}
		list = append(list, r)
	}
	return list
}

// A prompt's text is the same alone and beside others, in any batch, on any ranks, at any stage, with any threads; a copy of a prompt has another.
func TestGenerateIsAFunctionOfSeedAndPrompt(t *testing.T) {
	empty(t)
	from := byteModel(t)
	args := []string{"--from", from, "--max-tokens", "40", "--temperature", "1.3", "--top-p", "0.95", "--top-k", "0", "--prompt", "one", "--prompt", "a longer prompt", "--prompt", "one",
		"--prompt", "longer than all of the positions that the model has", "--prompt", "é"}
	want := records(t, args...)
	if len(want) != 5 || slices.Equal(want[0].IDs, want[2].IDs) {
		t.Fatalf("%d texts; the first and the third, of one prompt: %v and %v", len(want), want[0].IDs, want[2].IDs)
	}
	for i, r := range want {
		if len(r.IDs) != 40 || r.Ended || !utf8.ValidString(r.Text) {
			t.Errorf("text %d: %+v", i, r)
		}
	}
	for _, more := range []string{"--batch 1", "--batch 2", "--batch 3 --threads 3", "--ranks 2", "--ranks 1 --stage 3", "--ranks 3 --stage 3 --batch 4"} {
		got := records(t, append(args, strings.Fields(more)...)...)
		for i := range want {
			if fmt.Sprint(got[i]) != fmt.Sprint(want[i]) {
				t.Errorf("%s: text %d is %v, want %v", more, i, got[i].IDs, want[i].IDs)
			}
		}
	}
	args = args[:slices.Index(args, "--prompt")]
	for i, r := range want {
		if i == 2 { // the copy
			continue
		}
		if got := records(t, append(slices.Clone(args), "--prompt", r.Prompt)...); fmt.Sprint(got[0]) != fmt.Sprint(r) {
			t.Errorf("text %d alone is %v, want %v", i, got[0].IDs, r.IDs)
		}
	}
	args = append(args, "--prompt", "one")
	if other := records(t, append(args, "--seed", "2")...); slices.Equal(other[0].IDs, want[0].IDs) {
		t.Error("another seed, the same text")
	}
}

// The greedy text is what the highest logit says, whatever the seed.
func TestGenerateGreedily(t *testing.T) {
	empty(t)
	from := byteModel(t)
	a := records(t, "--from", from, "--prompt", "abc", "--temperature", "0", "--max-tokens", "30")
	b := records(t, "--from", from, "--prompt", "abc", "--top-k", "1", "--seed", "9", "--max-tokens", "30")
	if !slices.Equal(a[0].IDs, b[0].IDs) {
		t.Errorf("temperature 0: %v, top-k 1: %v", a[0].IDs, b[0].IDs)
	}
}

// Standard output holds the prompts and the texts, as valid UTF-8, a line of dashes between them, and nothing else.
func TestGenerateWritesTexts(t *testing.T) {
	empty(t)
	from := byteModel(t)
	args := []string{"--from", from, "--max-tokens", "50", "--temperature", "1.5", "--top-k", "0", "--prompt", "one é", "--prompt", "two", "--prompt", "three"}
	var want strings.Builder
	for i, r := range records(t, args...) {
		if i > 0 {
			want.WriteString(between + "\n")
		}
		all := tokenizer.NewStream(tokenizer.Bytes())
		for _, id := range append(r.PromptIDs, r.IDs...) {
			piece, err := all.Add(id)
			if err != nil {
				t.Fatal(err)
			}
			want.WriteString(piece)
		}
		want.WriteString(all.End() + "\n")
	}
	for _, more := range []string{"--batch 8", "--batch 2", "--batch 1"} {
		o := generate(t, append(args, strings.Fields(more)...)...)
		if o.stdout != want.String() || !utf8.ValidString(o.stdout) {
			t.Errorf("%s: got %q, want %q", more, o.stdout, want.String())
		}
		if !strings.Contains(o.stderr, "tokens/s") || !strings.Contains(o.stderr, "planned") {
			t.Errorf("told: %s", o.stderr)
		}
	}
	if o := generate(t, append(args, "--quiet")...); o.stdout != want.String() || o.stderr != "" {
		t.Errorf("quiet: %q, %q", o.stdout, o.stderr)
	}
}

// Prompts come from a file, a line each.
func TestGenerateFromAPromptFile(t *testing.T) {
	dir := empty(t)
	from := byteModel(t)
	path := filepath.Join(dir, "prompts")
	if err := os.WriteFile(path, []byte("first\r\nsecond\nthird without an end"), 0o644); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range records(t, "--from", from, "--prompt", "zeroth", "--prompt-file", path, "--max-tokens", "2") {
		got = append(got, r.Prompt)
	}
	if want := []string{"zeroth", "first", "second", "third without an end"}; !slices.Equal(got, want) {
		t.Errorf("prompts %q", got)
	}
}

// vocabulary makes a tokenizer's files in a folder: the 256 bytes, and an end of text with id 256.
func vocabulary(t *testing.T, dir string) {
	t.Helper()
	bytes := tokenizer.Bytes()
	if err := tokenizer.Save(dir, bytes); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "vocab.json")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.TrimSuffix(strings.TrimSpace(string(raw)), "}") + `,"<|endoftext|>":256}`
	for name, content := range map[string]string{"vocab.json": text, "special_tokens_map.json": `{"eos_token":"<|endoftext|>"}`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// A text ends where the model ends it, and an empty prompt is the start of a document. Ids that the tokenizer has not are never drawn.
func TestGenerateEndsWithTheText(t *testing.T) {
	empty(t)
	from := folder(t, gpt.Config{Layers: 1, Heads: 1, Width: 8, Vocab: 300, Positions: 16, Bias: true})
	vocabulary(t, from)
	var args []string
	for range 12 {
		args = append(args, "--prompt", "")
	}
	ended := 0
	for i, r := range records(t, append(args, "--from", from, "--max-tokens", "150", "--temperature", "3", "--top-k", "0")...) {
		if !slices.Equal(r.PromptIDs, []int32{256}) || r.Prompt != "" {
			t.Errorf("text %d begins with %v, %q", i, r.PromptIDs, r.Prompt)
		}
		if slices.ContainsFunc(r.IDs, func(id int32) bool { return id >= 256 }) {
			t.Errorf("text %d: %v", i, r.IDs)
		}
		if r.Ended != (len(r.IDs) < 150) {
			t.Errorf("text %d of %d tokens: ended %t", i, len(r.IDs), r.Ended)
		}
		if r.Ended {
			ended++
		}
	}
	if ended == 0 || ended == 12 {
		t.Errorf("%d of 12 texts ended: the test shows nothing", ended)
	}
}

// configure changes fields of a folder's config.json.
func configure(t *testing.T, dir string, fields map[string]any) {
	t.Helper()
	path := filepath.Join(dir, "config.json")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]any{}
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	maps.Copy(all, fields)
	if raw, err = json.Marshal(all); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, raw, 0o644); err != nil {
		t.Fatal(err)
	}
}

// Where the tokenizer has no end of text, the one in config.json ends texts, whether the tokenizer knows its id or not.
func TestGenerateEndsWhereTheConfigurationSays(t *testing.T) {
	empty(t)
	from := folder(t, gpt.Config{Layers: 1, Heads: 1, Width: 8, Vocab: 300, Positions: 16, Bias: true})
	args := []string{"--from", from, "--tokenizer", "bytes", "--max-tokens", "150", "--temperature", "3", "--top-k", "0"}
	for i := range 12 {
		args = append(args, "--prompt", string(rune('a'+i)))
	}
	endless := records(t, args...)
	for _, end := range []int32{65, 256, 299} {
		configure(t, from, map[string]any{"eos_token_id": end})
		ended := 0
		for i, r := range records(t, args...) {
			if r.Ended != (len(r.IDs) < 150) || endless[i].Ended || slices.ContainsFunc(r.IDs, func(id int32) bool { return id >= 256 || id == end }) {
				t.Errorf("end %d: text %d of %d tokens, ended %t: %v", end, i, len(r.IDs), r.Ended, r.IDs)
			}
			if at := slices.Index(endless[i].IDs, end); end < 256 && at >= 0 && !slices.Equal(r.IDs, endless[i].IDs[:at]) {
				t.Errorf("end %d: text %d is %v, and without an end %v", end, i, r.IDs, endless[i].IDs)
			}
			if r.Ended {
				ended++
			}
		}
		if ended == 0 || ended == 12 {
			t.Errorf("end %d: %d of 12 texts ended: the test shows nothing", end, ended)
		}
		if r := records(t, "--from", from, "--tokenizer", "bytes", "--max-tokens", "1", "--prompt", "")[0]; !slices.Equal(r.PromptIDs, []int32{end}) || r.Prompt != "" {
			t.Errorf("end %d: an empty prompt is %v, %q", end, r.PromptIDs, r.Prompt)
		}
		for i, name := range []string{"bytes", "none"} {
			to := filepath.Join(t.TempDir(), name)
			ok(t, "checkpoint", "export", from, "--hf", to, "--tokenizer", name)
			f, err := hf.Open(to)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			if id, has := f.EndOfText(); !has || int32(id) != end {
				t.Errorf("export %d: the end is %d, %t, want %d", i, id, has, end)
			}
		}
		// A step of such a model ends its texts at the same token, and so does the folder that it is exported to.
		imported, again := filepath.Join(t.TempDir(), "imported"), filepath.Join(t.TempDir(), "again")
		ok(t, "checkpoint", "import", from, "--out", imported)
		ok(t, "checkpoint", "export", imported, "--hf", again, "--tokenizer", "none")
		f, err := hf.Open(again)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if id, has := f.EndOfText(); !has || int32(id) != end {
			t.Errorf("imported and exported: the end is %d, %t, want %d", id, has, end)
		}
	}
	vocabulary(t, from)
	if r := records(t, "--from", from, "--max-tokens", "1", "--prompt", "")[0]; !slices.Equal(r.PromptIDs, []int32{256}) {
		t.Errorf("the tokenizer's end is 256, config.json's 299: an empty prompt is %v", r.PromptIDs)
	}
}

// What config.json says of dropout is told beside what the run does.
func TestInitFromTellsOfDropout(t *testing.T) {
	empty(t)
	data := micro(t)[4]
	from := folder(t, gpt.Config{Layers: 1, Heads: 1, Width: 8, Vocab: 97, Positions: 16, Bias: true})
	for want, fields := range map[string]map[string]any{
		"":                    {},
		"0.25; this run's is": {"embd_pdrop": 0.25, "attn_pdrop": 0.25, "resid_pdrop": 0.25},
		"0.25 after the embedding, 0 of attention, 0.5 of residual branches; this run's is 0.1 (--dropout)": {"embd_pdrop": 0.25, "attn_pdrop": 0, "resid_pdrop": 0.5},
	} {
		configure(t, from, fields)
		got := ok(t, "train", "--data", data, "--steps", "1", "--seq", "8", "--sample", "0", "--dropout", "0.1", "--out", t.TempDir(), "--init-from", from)
		if says := strings.Contains(got.stderr, "made with dropout"); says != (want != "") || !strings.Contains(got.stderr, want) {
			t.Errorf("want %q:\n%s", want, got.stderr)
		}
		configure(t, from, map[string]any{"embd_pdrop": 0, "attn_pdrop": 0, "resid_pdrop": 0})
	}
}

func TestGenerateRefuses(t *testing.T) {
	dir := empty(t)
	from, odd := byteModel(t), folder(t, gpt.Config{Layers: 1, Heads: 1, Width: 8, Vocab: 97, Positions: 16, Bias: true})
	nothing := filepath.Join(dir, "nothing")
	if err := os.WriteFile(nothing, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		args []string
		code int
		says string
	}{
		{"no source", []string{"--prompt", "x"}, 2, "--from is needed"},
		{"no prompt", []string{"--from", from}, 2, "--prompt TEXT or --prompt-file FILE is needed"},
		{"no such folder", []string{"--from", "nowhere", "--prompt", "x"}, 3, "nowhere"},
		{"a folder of nothing", []string{"--from", dir, "--prompt", "x"}, 3, dir},
		{"unknown tokens", []string{"--from", odd, "--prompt", "x"}, 2, "pass --tokenizer"},
		{"another model's tokens", []string{"--from", odd, "--prompt", "x", "--tokenizer", "bytes"}, 2, "another model's"},
		{"unknown tokenizer", []string{"--from", from, "--prompt", "x", "--tokenizer", "gpt-2"}, 2, "did you mean gpt2?"},
		{"empty prompt", []string{"--from", from, "--prompt", ""}, 2, "prompt 1 is empty"},
		{"no prompt file", []string{"--from", from, "--prompt-file", "nowhere"}, 3, "nowhere"},
		{"empty prompt file", []string{"--from", from, "--prompt-file", nothing}, 2, "holds no prompt"},
		{"cold", []string{"--from", from, "--prompt", "x", "--temperature", "-1"}, 2, "--temperature -1"},
		{"temperature NaN", []string{"--from", from, "--prompt", "x", "--temperature", "NaN"}, 2, "--temperature NaN"},
		{"top-k", []string{"--from", from, "--prompt", "x", "--top-k", "-1"}, 2, "--top-k -1"},
		{"top-p 0", []string{"--from", from, "--prompt", "x", "--top-p", "0"}, 2, "--top-p 0"},
		{"top-p over 1", []string{"--from", from, "--prompt", "x", "--top-p", "1.5"}, 2, "--top-p 1.5"},
		{"no tokens", []string{"--from", from, "--prompt", "x", "--max-tokens", "0"}, 2, "--max-tokens 0"},
		{"no batch", []string{"--from", from, "--prompt", "x", "--batch", "0"}, 2, "--batch 0"},
		{"stage 4", []string{"--from", from, "--prompt", "x", "--stage", "4"}, 2, "--stage 4"},
		{"no ranks", []string{"--from", from, "--prompt", "x", "--ranks", "0"}, 2, "--ranks 0"},
	} {
		o := execute(append([]string{"generate"}, c.args...)...)
		if o.code != c.code || !strings.Contains(o.stderr, c.says) || o.stdout != "" || strings.Count(o.stderr, "\n") != 1 {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q; want %d and %q", c.name, o.code, o.stdout, o.stderr, c.code, c.says)
		}
	}
}
