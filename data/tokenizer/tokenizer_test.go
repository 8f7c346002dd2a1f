package tokenizer_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/pkoukk/tiktoken-go"
	loader "github.com/pkoukk/tiktoken-go-loader"

	"zeroshard/data"
	"zeroshard/data/tokenizer"
)

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// gpt2 is GPT-2's encoding, and the same from files.
func gpt2(t testing.TB) (built, opened tokenizer.Tokenizer) {
	t.Helper()
	built = must(tokenizer.GPT2())(t)
	dir := filepath.Join(t.TempDir(), "mine")
	if err := tokenizer.Save(dir, built); err != nil {
		t.Fatal(err)
	}
	return built, must(tokenizer.Open(dir))(t)
}

func decode(t testing.TB, tok tokenizer.Tokenizer, ids []int32) string {
	t.Helper()
	var out []byte
	for _, id := range ids {
		if id < 0 || int(id) >= tok.Vocab() {
			t.Fatalf("id %d outside the vocabulary of %d", id, tok.Vocab())
		}
		if eot, ok := tok.EndOfText(); ok && id == eot {
			t.Fatal("a text gave the end of text")
		}
		out = append(out, must(tok.Token(id))(t)...)
	}
	return string(out)
}

// The ids in testdata are those of OpenAI's tiktoken 0.14.0 (Rust), encode_ordinary.
func TestKnownIDs(t *testing.T) {
	var known []struct {
		Text string
		IDs  []int32
	}
	if err := json.Unmarshal(must(os.ReadFile("testdata/gpt2.json"))(t), &known); err != nil || len(known) < 40 {
		t.Fatal(len(known), err)
	}
	built, opened := gpt2(t)
	for _, tok := range []tokenizer.Tokenizer{built, opened} {
		for _, k := range known {
			got := tok.Encode([]int32{7}, k.Text)
			if got[0] != 7 || !slices.Equal(got[1:], k.IDs) {
				t.Errorf("%s: %q: %v, want %v", tok.Name(), k.Text, got[1:], k.IDs)
			}
			if back := decode(t, tok, got[1:]); back != k.Text {
				t.Errorf("%s: %q came back as %q", tok.Name(), k.Text, back)
			}
		}
		if id, ok := tok.EndOfText(); id != 50256 || !ok || tok.Vocab() != 50257 {
			t.Errorf("%s: end of text %d, %v; vocabulary %d", tok.Name(), id, ok, tok.Vocab())
		}
		if raw := must(tok.Token(50256))(t); string(raw) != "<|endoftext|>" {
			t.Errorf("token 50256 is %q", raw)
		}
	}
	if built.Name() != "gpt2" || opened.Name() != "mine" || !tokenizer.BuiltIn(built) || tokenizer.BuiltIn(opened) {
		t.Errorf("names %q and %q", built.Name(), opened.Name())
	}
}

// The default corpus, whole: the count and hash (of ids as uint16) are OpenAI's tiktoken's.
func TestKnownCount(t *testing.T) {
	path, err := data.DefaultPath()
	if err != nil {
		t.Skip(err)
	}
	raw := must(os.ReadFile(path))(t)
	if sum := sha256.Sum256(raw); hex.EncodeToString(sum[:]) != "d4a9ac22462b35e7821a4f2706c211093da678620a8f9997989ee7cf8d507bbd" {
		t.Skip("this Go has another text")
	}
	built, opened := gpt2(t)
	for _, tok := range []tokenizer.Tokenizer{built, opened} {
		if tok == opened && testing.Short() {
			continue
		}
		ids := tok.Encode(nil, string(raw))
		h := sha256.New()
		for _, id := range ids {
			h.Write([]byte{byte(id), byte(id >> 8)})
		}
		if sum := hex.EncodeToString(h.Sum(nil)); len(ids) != 147297 || sum != "e4e69d7ccc75d1feb76015669c080dde111c8ec18a643297c53cf22169f6095e" {
			t.Errorf("%s: %d tokens, %s", tok.Name(), len(ids), sum)
		}
		if decode(t, tok, ids) != string(raw) {
			t.Errorf("%s: the text does not come back", tok.Name())
		}
	}
}

// What Save writes for GPT-2 is what OpenAI published, to the byte.
func TestGPT2Files(t *testing.T) {
	files := must(tokenizer.Files(must(tokenizer.GPT2())(t)))(t)
	for name, want := range map[string]string{
		"vocab.json": "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783",
		"merges.txt": "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5",
	} {
		if sum := sha256.Sum256(files[name]); hex.EncodeToString(sum[:]) != want {
			t.Errorf("%s: %x", name, sum)
		}
	}
}

func TestBytes(t *testing.T) {
	tok := tokenizer.Bytes()
	dir := filepath.Join(t.TempDir(), "b")
	if err := tokenizer.Save(dir, tok); err != nil {
		t.Fatal(err)
	}
	opened := must(tokenizer.Open(dir))(t)
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	for _, text := range []string{"", "hé\n", string(all)} {
		for _, k := range []tokenizer.Tokenizer{tok, opened} {
			ids := k.Encode(nil, text)
			for i, id := range ids {
				if id != int32(text[i]) {
					t.Errorf("%s: byte %d has id %d", k.Name(), text[i], id)
				}
			}
			if decode(t, k, ids) != text || k.Vocab() != 256 {
				t.Errorf("%s: %q, vocabulary %d", k.Name(), text, k.Vocab())
			}
			if _, ok := k.EndOfText(); ok {
				t.Errorf("%s has an end of text", k.Name())
			}
		}
	}
	var ids map[string]int
	if err := json.Unmarshal(must(os.ReadFile(filepath.Join(dir, "vocab.json")))(t), &ids); err != nil {
		t.Fatal(err)
	}
	if len(ids) != 256 || ids["A"] != 'A' || ids["Ġ"] != ' ' || ids["Ā"] != 0 || ids["ÿ"] != 255 {
		t.Errorf("%d ids, %d %d %d %d", len(ids), ids["A"], ids["Ġ"], ids["Ā"], ids["ÿ"])
	}
	// Left out, they would become <|endoftext|> with id 256 in transformers.
	var config map[string]any
	if err := json.Unmarshal(must(os.ReadFile(filepath.Join(dir, "tokenizer_config.json")))(t), &config); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"unk_token", "bos_token", "eos_token", "pad_token"} {
		if v, ok := config[name]; !ok || v != nil {
			t.Errorf("%s is %v, %v; want null", name, v, ok)
		}
	}
}

func TestTokenErrors(t *testing.T) {
	built := must(tokenizer.GPT2())(t)
	for _, tok := range []tokenizer.Tokenizer{tokenizer.Bytes(), built} {
		for _, id := range []int32{-1, int32(tok.Vocab())} {
			if _, err := tok.Token(id); !errors.Is(err, tokenizer.ErrID) {
				t.Errorf("%s: token %d: %v", tok.Name(), id, err)
			}
		}
	}
}

func TestNamed(t *testing.T) {
	for _, name := range []string{"bytes", "gpt2"} {
		if got := must(tokenizer.Named(name))(t).Name(); got != name {
			t.Errorf("%s is %s", name, got)
		}
	}
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, say := range map[string]string{"gpt-2": "did you mean gpt2?", "GPT2": "did you mean gpt2?", "byte": "did you mean bytes?", "gpt2x": "did you mean gpt2?",
		"llama": "there are bytes, gpt2, and folders", "": "there are bytes", file: "name the folder"} {
		if _, err := tokenizer.Named(name); !errors.Is(err, tokenizer.ErrUnknown) || !strings.Contains(err.Error(), say) {
			t.Errorf("%q: %v, want %q", name, err, say)
		}
	}
}

// Several goroutines may use one tokenizer.
func TestConcurrentUse(t *testing.T) {
	built := must(tokenizer.GPT2())(t)
	want := built.Encode(nil, "the same words for all of them, again and again")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				if got := built.Encode(nil, "the same words for all of them, again and again"); !slices.Equal(got, want) {
					t.Error(got)
				}
			}
		})
	}
	wg.Wait()
}

// library is tiktoken-go's own encoder of whole texts.
func library(t testing.TB) func(string) []int32 {
	ranks := must(loader.NewOfflineLoader().LoadTiktokenBpe("r50k_base.tiktoken"))(t)
	special := map[string]int{"<|endoftext|>": 50256}
	pattern := `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
	core := must(tiktoken.NewCoreBPE(ranks, special, pattern))(t)
	enc := tiktoken.NewTiktoken(core, &tiktoken.Encoding{}, nil)
	return func(text string) []int32 {
		var out []int32
		for _, id := range enc.EncodeOrdinary(text) {
			out = append(out, int32(id))
		}
		return out
	}
}

// FuzzEncode: the library's ids for whole texts are ours by pieces, whether merged by the library, by its ranks, or by a folder's pairs;
// and the bytes come back.
func FuzzEncode(f *testing.F) {
	for _, s := range []string{"", "I'm don't ' 's  x\n\n y", "a\xffb\xc3", strings.Repeat("ab", 300), strings.Repeat(" ", 700) + "x",
		strings.Repeat("=", 600), "\u00a0 \u2003x\u0085", "世界😀e\u0301½", strings.Repeat("é'", 200), "'''s'll've\t's"} {
		f.Add(s)
	}
	built, opened := gpt2(f)
	want := library(f)
	f.Fuzz(func(t *testing.T, text string) {
		ids := built.Encode(nil, text)
		if w := want(text); !slices.Equal(ids, w) {
			t.Errorf("%q\n %v, the library\n %v", text, ids, w)
		}
		if o := opened.Encode(nil, text); !slices.Equal(ids, o) {
			t.Errorf("%q\n %v, by pairs\n %v", text, ids, o)
		}
		if back := decode(t, built, ids); back != string([]rune(text)) {
			t.Errorf("%q came back as %q", text, back)
		}
	})
}

// FuzzCuts: wherever a text is cut by LastCut, the ids of the parts are those of the whole.
func FuzzCuts(f *testing.F) {
	for _, s := range []string{"hello world's end\n\n  x", "it'll 12ab!!x' s 's", "a\xffb \xc3 c", "世 界1é", "'s1're", "x'\u00a0y"} {
		f.Add(s, uint(len(s)))
	}
	built := must(tokenizer.GPT2())(f)
	f.Fuzz(func(t *testing.T, text string, n uint) {
		n %= uint(len(text)) + 1
		p := tokenizer.Cut([]byte(text[:n]))
		if p < 0 || p > int(n) {
			t.Fatalf("cut at %d of %d", p, n)
		}
		whole, parts := built.Encode(nil, text), built.Encode(built.Encode(nil, text[:p]), text[p:])
		if !slices.Equal(whole, parts) {
			t.Errorf("%q cut at %d:\n %v, whole\n %v", text, p, parts, whole)
		}
	})
}

func TestLastCut(t *testing.T) {
	for text, want := range map[string]int{"": 0, "abc": 0, "abc ": 3, "abc def": 3, "abc  ": 3, "  ": 0, "ab12": 2, "ab!": 2, "it's": 2, "it'": 2,
		"x's y": 3, "a é": 1, "ab\xc3": 0, "ab \xc3": 2, "\xff ": 0, "a\n": 1} {
		if got := tokenizer.Cut([]byte(text)); got != want {
			t.Errorf("%q is cut at %d, want %d", text, got, want)
		}
	}
	if got := tokenizer.LastCut(tokenizer.Bytes(), []byte("\xc3")); got != 1 {
		t.Errorf("bytes are cut at %d", got)
	}
}

// A run of one letter takes n·log n steps: a million of them, squared, would not end.
func TestLongRun(t *testing.T) {
	built := must(tokenizer.GPT2())(t)
	n := 1 << 19
	if testing.Short() {
		n >>= 3
	}
	ids := built.Encode(nil, strings.Repeat("a", n))
	if got := len(decode(t, built, ids)); got != n {
		t.Errorf("%d letters came back as %d", n, got)
	}
}

// FuzzStream: the pieces are valid UTF-8 and make the text, however it is cut into tokens.
func FuzzStream(f *testing.F) {
	f.Add([]byte("a é 世 😀 \xff\xe2\x82 \xf0\x9f\x98"))
	f.Add([]byte("\xed\xa0\x80\xf4\x90\x80\x80\xc0\xaf"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		s := tokenizer.NewStream(tokenizer.Bytes())
		for range 2 { // End begins anew
			var out bytes.Buffer
			for _, b := range raw {
				piece := must(s.Add(int32(b)))(t)
				if !utf8.ValidString(piece) {
					t.Fatalf("%q is no UTF-8", piece)
				}
				out.WriteString(piece)
			}
			out.WriteString(s.End())
			if want := string([]rune(string(raw))); out.String() != want {
				t.Fatalf("%q, want %q", out.String(), want)
			}
		}
	})
}

func TestStream(t *testing.T) {
	built := must(tokenizer.GPT2())(t)
	s := tokenizer.NewStream(built)
	var pieces []string
	for _, id := range built.Encode(nil, "x 😀") { // the face is several tokens
		pieces = append(pieces, must(s.Add(id))(t))
	}
	if got := strings.Join(pieces, "|"); got != "x| |😀" {
		t.Errorf("%q", got)
	}
	if _, err := s.Add(99999); !errors.Is(err, tokenizer.ErrID) {
		t.Errorf("%v", err)
	}
	if got := s.End(); got != "" {
		t.Errorf("left %q", got)
	}
}
