package prepare_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
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
	"testing"

	"go.uber.org/goleak"

	"zeroshard/data"
	"zeroshard/data/prepare"
	"zeroshard/data/tokenizer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// tree writes files below a new folder.
func tree(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// contents are all files below a folder.
func contents(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		out[filepath.ToSlash(name)] = string(raw)
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return out
}

func options(out string, tok tokenizer.Tokenizer) prepare.Options {
	return prepare.Options{Tokenizer: tok, Out: out, Val: 0.1, TextField: "text", Threads: 2, Stdin: strings.NewReader("")}
}

// ids reads a token file.
func ids(t testing.TB, path string, vocab int) []int32 {
	t.Helper()
	f := must(data.Open(path, vocab))(t)
	defer f.Close()
	out := make([]int32, f.Len())
	if err := f.Read(0, out); err != nil {
		t.Fatal(err)
	}
	return out
}

// foreign is a tokenizer that this tree does not know.
type foreign struct{ tokenizer.Tokenizer }

// mine is a tokenizer from a folder, with an end of text: bytes, and <|endoftext|> as the last id, which is far up.
func mine(t testing.TB, eot int) tokenizer.Tokenizer {
	t.Helper()
	files := maps.Clone(must(tokenizer.Files(tokenizer.Bytes()))(t))
	files["vocab.json"] = fmt.Appendf(bytes.TrimSuffix(files["vocab.json"], []byte("}")), `, "<|endoftext|>": %d}`, eot)
	dir := filepath.Join(t.TempDir(), "mine")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"vocab.json", "merges.txt"} {
		if err := os.WriteFile(filepath.Join(dir, name), files[name], 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return must(tokenizer.Open(dir))(t)
}

// text is the ids of the tokenizer mine as a text, with a line end for the end of text.
func text(ids []int32, eot int32) string {
	var out []byte
	for _, id := range ids {
		if id == eot {
			id = '|'
		}
		out = append(out, byte(id))
	}
	return string(out)
}

func TestParts(t *testing.T) {
	eleven := map[string]string{}
	for i := range 11 {
		eleven[fmt.Sprintf("d%02d.txt", i)] = string(rune('a' + i))
	}
	jsonl := `{"text": "one", "id": 1}` + "\n\n" + `{"id": 2, "text": "t\u0077o"}` + "\r\n" + `{"text": ""}` + "\n" + `{"text": "four"}`
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	if _, err := z.Write([]byte(jsonl)); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name       string
		files      map[string]string
		inputs     []string // below the folder; nil: the folder
		stdin      string
		set        func(o *prepare.Options)
		train, val string
		docs       [2]int64
		skipped    int
		last       bool
	}{
		{name: "one text is cut at nine tenths", files: map[string]string{"a.txt": "0123456789abcdefghi"}, train: "0123456789abcdefg", val: "hi", docs: [2]int64{1, 0}},
		{name: "before a character", files: map[string]string{"a": "01234567é8"}, train: "01234567", val: "é8", docs: [2]int64{1, 0}},
		{name: "one text from the standard input", inputs: []string{"-"}, stdin: "0123456789", train: "012345678", val: "9", docs: [2]int64{1, 0}},
		{name: "half", files: map[string]string{"a": "abcd"}, set: func(o *prepare.Options) { o.Val = 0.5 }, train: "ab", val: "cd", docs: [2]int64{1, 0}},
		{name: "no validation", files: map[string]string{"a": "abc"}, set: func(o *prepare.Options) { o.Val = 0 }, train: "abc", docs: [2]int64{1, 0}},
		{name: "every tenth of several", files: eleven, train: "a|b|c|d|e|f|g|h|i|k|", val: "j|", docs: [2]int64{10, 1}},
		{name: "the last of few", files: map[string]string{"a": "A", "b": "B", "c": "C"}, train: "A|B|", val: "C|", docs: [2]int64{2, 1}, last: true},
		{name: "the last of few lines", files: map[string]string{"a.jsonl": jsonl}, train: "one|two||", val: "four|", docs: [2]int64{3, 1}, last: true},
		{name: "the last of two from the standard input", inputs: []string{"-", "a"}, files: map[string]string{"a": "A"}, stdin: "in", train: "in|", val: "A|", docs: [2]int64{1, 1}, last: true},
		{name: "every third", files: eleven, set: func(o *prepare.Options) { o.Val = 0.333334 }, train: "a|b|d|e|g|h|j|k|", val: "c|f|i|", docs: [2]int64{8, 3}},
		{name: "in the order of names, without hidden ones", files: map[string]string{"b/2": "B", "a/x": "A", "c": "C", ".git/y": "no", "b/.z": "no", "a.txt": "D"},
			set: func(o *prepare.Options) { o.Val = 0.25 }, train: "A|D|B|", val: "C|", docs: [2]int64{3, 1}, skipped: 2},
		{name: "in the order of arguments", files: map[string]string{"a": "A", "b": "B"}, inputs: []string{"b", "-", "a"}, stdin: "in", set: func(o *prepare.Options) { o.Val = 0.4 },
			train: "B|in|", val: "A|", docs: [2]int64{2, 1}},
		{name: "lines", files: map[string]string{"a.jsonl": jsonl}, set: func(o *prepare.Options) { o.Val = 0.25 }, train: "one|two||", val: "four|", docs: [2]int64{3, 1}},
		{name: "zipped lines", files: map[string]string{"a.jsonl.gz": zipped.String()}, set: func(o *prepare.Options) { o.Val = 0.5 }, train: "one||", val: "two|four|", docs: [2]int64{2, 2}},
		{name: "lines from the standard input", inputs: []string{"-"}, stdin: `{"body": "x"}` + "\n" + `{"body": "y"}`,
			set: func(o *prepare.Options) { o.Val, o.TextField, o.Format = 0.5, "body", prepare.JSONL }, train: "x|", val: "y|", docs: [2]int64{1, 1}},
		{name: "lines as text", files: map[string]string{"a.jsonl": "{}\n12345678"}, set: func(o *prepare.Options) { o.Format = prepare.Text }, train: "{}\n123456", val: "78", docs: [2]int64{1, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			tok := mine(t, 300)
			in := tree(t, c.files)
			inputs := []string{in}
			if c.inputs != nil {
				inputs = nil
				for _, i := range c.inputs {
					if i != "-" {
						i = filepath.Join(in, i)
					}
					inputs = append(inputs, i)
				}
			}
			out := filepath.Join(t.TempDir(), "a", "out")
			o := options(out, tok)
			o.Stdin = strings.NewReader(c.stdin)
			if c.set != nil {
				c.set(&o)
			}
			res := must(prepare.Run(t.Context(), inputs, o))(t)
			if got := text(ids(t, filepath.Join(out, "train.bin"), 301), 300); got != c.train {
				t.Errorf("train %q, want %q", got, c.train)
			}
			want := []string{"merges.txt", "meta.json", "train.bin", "val.bin", "vocab.json"}
			var docs [2]int64
			if docs[0] = res.Meta.Train.Documents; c.val != "" {
				docs[1] = res.Meta.Val.Documents
				if got := text(ids(t, filepath.Join(out, "val.bin"), 301), 300); got != c.val {
					t.Errorf("val %q, want %q", got, c.val)
				}
			} else {
				want = slices.DeleteFunc(want, func(s string) bool { return s == "val.bin" })
			}
			if res.LastHeldOut != c.last {
				t.Errorf("the last was held out: %t", res.LastHeldOut)
			}
			if docs != c.docs || res.Meta.Documents != docs[0]+docs[1] || res.Skipped != c.skipped {
				t.Errorf("documents %v, want %v; skipped %d, want %d", docs, c.docs, res.Skipped, c.skipped)
			}
			if got := slices.Sorted(maps.Keys(contents(t, out))); !slices.Equal(got, want) {
				t.Errorf("files %v, want %v", got, want)
			}
			if single := c.docs == [2]int64{1, 0}; single != (res.Meta.EndOfText == nil) {
				t.Errorf("end of text %v", res.Meta.EndOfText)
			}
		})
	}
}

// What prepare writes, data.OpenSet takes, and knows the tokenizer.
func TestOpenSetTakesIt(t *testing.T) {
	in := tree(t, map[string]string{"a": strings.Repeat("a few words. ", 30)})
	for name, tok := range map[string]tokenizer.Tokenizer{"bytes": tokenizer.Bytes(), "gpt2": must(tokenizer.GPT2())(t), "": mine(t, 70_000)} {
		out := filepath.Join(t.TempDir(), "out")
		res := must(prepare.Run(t.Context(), []string{in}, options(out, tok)))(t)
		s := must(data.OpenSet([]string{out}, 80_000, 2))(t)
		if s.Tokenizer != name && s.Tokenizer != out || int64(s.Train.Len()) != res.Meta.Train.Tokens || int64(s.Val.Len()) != res.Meta.Val.Tokens {
			t.Errorf("tokenizer %q, %d and %d tokens; %+v", s.Tokenizer, s.Train.Len(), s.Val.Len(), res.Meta)
		}
		if again := must(tokenizer.Named(s.Tokenizer))(t); again.Vocab() != tok.Vocab() {
			t.Errorf("%s has vocabulary %d, want %d", s.Tokenizer, again.Vocab(), tok.Vocab())
		}
		s.Close()
		if _, err := data.OpenSet([]string{out}, 200, 2); !errors.Is(err, data.ErrMismatch) {
			t.Errorf("a model of vocabulary 200: %v", err)
		}
		var m data.Meta
		if err := json.Unmarshal([]byte(contents(t, out)["meta.json"]), &m); err != nil || m.Type != map[bool]string{true: "uint16", false: "uint32"}[tok.Vocab() < 65536] {
			t.Errorf("%+v, %v", m, err)
		}
	}
}

// The default corpus in GPT-2's ids: two hashes that were computed by OpenAI's tiktoken from the two parts of the text.
func TestBook(t *testing.T) {
	path, err := data.DefaultPath()
	if err != nil {
		t.Skip(err)
	}
	if info := must(os.Stat(path))(t); info.Size() != 567198 {
		t.Skip("this Go has another text")
	}
	res := must(prepare.Run(t.Context(), []string{path}, options(filepath.Join(t.TempDir(), "out"), must(tokenizer.GPT2())(t))))(t)
	if m := res.Meta; m.Train.Tokens != 133_293 || m.Val.Tokens != 14_005 || m.Train.SHA256 != trainSum || m.Val.SHA256 != valSum {
		t.Errorf("%+v\n%+v", m.Train, m.Val)
	}
}

const (
	trainSum = "1c60d60a091365650f38d6834448da492521c54c90e410bf6b741b029b88544f"
	valSum   = "9cabaee60ec0c803043169640487cbf5b455ce6c72a620fa2974489227eaff8a"
)

// Threads change no byte.
func TestThreads(t *testing.T) {
	repeats := 40_000
	if testing.Short() {
		repeats = 15_000
	}
	files := map[string]string{"z.txt": strings.Repeat("A long text of many words, it's "+"1234 and…\n\n", repeats)}
	for i := range 300 {
		files[fmt.Sprintf("d/%03d.txt", i)] = strings.Repeat(fmt.Sprintf("short %d ", i), i%40)
	}
	in, gpt2 := tree(t, files), must(tokenizer.GPT2())(t)
	var want map[string]string
	for _, threads := range []int{1, 2, 5} {
		o := options(filepath.Join(t.TempDir(), "out"), gpt2)
		o.Threads = threads
		must(prepare.Run(t.Context(), []string{in}, o))(t)
		got := contents(t, o.Out)
		if want == nil {
			want = got
		}
		if !maps.Equal(got, want) {
			t.Errorf("%d threads give other files", threads)
		}
	}
	// The long text was cut for the encoders; its ids are those of the whole.
	whole := gpt2.Encode(nil, files["z.txt"])
	train := ids(t, writeFile(t, "t.bin", want["train.bin"]), gpt2.Vocab())
	if n := len(train) - 1; !slices.Equal(train[max(0, n-len(whole)):n], whole) {
		t.Error("the ids of the long text are not those of the whole")
	}
}

func writeFile(t testing.TB, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// endless counts what is read of a text without end, and what was encoded of it when.
type endless struct {
	text     []byte
	limit, n int64
	encoded  func() int64
	max      int64
}

func (e *endless) Read(b []byte) (int, error) {
	if e.n >= e.limit {
		return 0, io.EOF
	}
	n := copy(b, e.text[e.n%int64(len(e.text)):])
	e.n += int64(n)
	e.max = max(e.max, e.n-e.encoded())
	return n, nil
}

// Whatever the length of the input, only a few blocks of it are on their way.
func TestBoundedMemory(t *testing.T) {
	in, limit := tree(t, map[string]string{"a": "first"}), int64(24<<20)
	if testing.Short() {
		limit = 8 << 20
	}
	for _, threads := range []int{1, 3} {
		done := make(chan int64, 1)
		done <- 0
		o := options(filepath.Join(t.TempDir(), "out"), tokenizer.Bytes())
		e := &endless{text: bytes.Repeat([]byte("some words go on "), 4000), limit: limit, encoded: func() int64 { n := <-done; done <- n; return n }}
		o.Threads, o.Val, o.Stdin = threads, 0.5, e
		o.Report = func(p prepare.Progress) { <-done; done <- p.Done }
		must(prepare.Run(t.Context(), []string{filepath.Join(in, "a"), "-"}, o))(t)
		if bound := int64(4*threads+8) * 256 << 10; e.n < e.limit || e.max > bound {
			t.Errorf("%d threads: %d bytes were read ahead, at most %d may be", threads, e.max, bound)
		}
	}
}

func TestInputFaults(t *testing.T) {
	long := strings.Repeat("a", 1<<21)
	for _, c := range []struct {
		name string
		file string
		text string
		say  string
	}{
		{"no JSON", "a.jsonl", `{"text": "a"}` + "\n" + `{"text": `, "a.jsonl: line 2: unexpected end of JSON"},
		{"no object", "a.jsonl", "\n\n" + `["text"]`, "line 3: want a JSON object"},
		{"no field", "a.jsonl", `{"title": "x", "body": "y"}`, `line 1: no field "text": there are body, title`},
		{"empty object", "a.jsonl", `{}`, "the object is empty"},
		{"no string", "a.jsonl", `{"text": 12}`, `field "text" is no string: "12"`},
		{"null", "a.jsonl", `{"text": null}`, `field "text" is no string: "null"`},
		{"not zipped", "a.jsonl.gz", `{"text": "a"}`, "a.jsonl.gz: gzip"},
		{"zipped text", "a.txt.gz", "x", "gzip -dc FILE"},
		{"a run without a cut", "a.txt", "word " + long, "a.txt: byte 4: 1048576 bytes without a place where the text can be cut"},
		{"a run in a line", "a.jsonl", `{"text": "b"}` + "\n" + `{"text": "` + long + `"}`, "a.jsonl: line 2: 1048576 bytes without"},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := tree(t, map[string]string{c.file: c.text})
			out := filepath.Join(t.TempDir(), "out")
			res, err := prepare.Run(t.Context(), []string{in}, options(out, mine(t, 256)))
			var ie *prepare.InputError
			if res != nil || !errors.As(err, &ie) || !errors.Is(err, prepare.ErrInput) || !strings.Contains(err.Error(), c.say) {
				t.Errorf("%v\nwant %q", err, c.say)
			}
			if _, err := os.Stat(out); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("left %v", contents(t, out))
			}
		})
	}
	// Bytes can be cut anywhere.
	in := tree(t, map[string]string{"a.txt": long})
	must(prepare.Run(t.Context(), []string{in}, options(filepath.Join(t.TempDir(), "out"), tokenizer.Bytes())))(t)
}

func TestRefusals(t *testing.T) {
	in := tree(t, map[string]string{"a": "some text", "b": "more", "sub/c": "x"})
	empty := tree(t, map[string]string{".hidden": "x"})
	full := tree(t, map[string]string{"train.bin": "xx"})
	for _, c := range []struct {
		name   string
		inputs []string
		set    func(o *prepare.Options)
		want   error
		say    string
	}{
		{"no tokenizer", []string{in}, func(o *prepare.Options) { o.Tokenizer = nil }, prepare.ErrOptions, "no tokenizer"},
		{"no folder", []string{in}, func(o *prepare.Options) { o.Out = "" }, prepare.ErrOptions, "no folder"},
		{"all for validation", []string{in}, func(o *prepare.Options) { o.Val = 1 }, prepare.ErrOptions, "fraction of 1"},
		{"no threads", []string{in}, func(o *prepare.Options) { o.Threads = 0 }, prepare.ErrOptions, "0 threads"},
		{"missing file", []string{filepath.Join(in, "none")}, nil, fs.ErrNotExist, "none"},
		{"no files", []string{empty}, nil, prepare.ErrEmpty, "no file among the inputs (1 entries skipped"},
		{"no inputs", nil, nil, prepare.ErrEmpty, "no file"},
		{"standard input twice", []string{"-", "-"}, nil, prepare.ErrOptions, "twice"},
		{"one line", []string{writeFile(t, "a.jsonl", `{"text": "a"}`)}, nil, prepare.ErrEmpty, "of 1 document(s) at most one has text"},
		{"one line that has text", []string{writeFile(t, "a.jsonl", `{"text": ""}`+"\n"+`{"text": "a"}`+"\n"+`{"text": ""}`)}, nil, prepare.ErrEmpty, "of 3 document(s) at most one"},
		{"short text", []string{writeFile(t, "a", "")}, nil, prepare.ErrEmpty, "hold no text"},
		{"nothing to train on", []string{writeFile(t, "a", "é")}, nil, prepare.ErrEmpty, "nothing is left to train on"},
		{"output among inputs", []string{in}, func(o *prepare.Options) { o.Out = filepath.Join(in, "sub", "new") }, prepare.ErrOptions, "lies in"},
		{"exists", []string{filepath.Join(in, "a")}, func(o *prepare.Options) { o.Out = full }, prepare.ErrExists, "train.bin"},
		{"unknown tokenizer", []string{filepath.Join(in, "a")}, func(o *prepare.Options) { o.Tokenizer = foreign{o.Tokenizer} }, tokenizer.ErrFolder, "bytes is not of a kind that can be saved"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := options(filepath.Join(t.TempDir(), "out"), tokenizer.Bytes())
			if c.set != nil {
				c.set(&o)
			}
			before := contents(t, o.Out)
			res, err := prepare.Run(t.Context(), c.inputs, o)
			if res != nil || !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.say) {
				t.Errorf("%v\nwant %v, %q", err, c.want, c.say)
			}
			if o.Out != "" && !maps.Equal(contents(t, o.Out), before) {
				t.Errorf("left %v", contents(t, o.Out))
			}
		})
	}
}

// stop is a reader that says when it is read, and then has no more to say.
type stop struct {
	said    bool
	reading chan struct{}
	end     chan struct{}
}

func (s *stop) Read(b []byte) (int, error) {
	if !s.said {
		s.said = true
		return copy(b, "a word"), nil
	}
	close(s.reading)
	<-s.end
	return 0, io.EOF
}

// An interrupted run leaves nothing, even if nobody ends its input.
func TestInterrupt(t *testing.T) {
	in := tree(t, map[string]string{"a": strings.Repeat("many words ", 100_000)})
	for _, inputs := range [][]string{{"-"}, {filepath.Join(in, "a"), "-"}} {
		ctx, cancel := context.WithCancelCause(t.Context())
		s := &stop{reading: make(chan struct{}), end: make(chan struct{})}
		o := options(filepath.Join(t.TempDir(), "out"), tokenizer.Bytes())
		o.Stdin, o.Val = s, 0.5
		cause := errors.New("enough")
		go func() { <-s.reading; cancel(cause) }()
		if _, err := prepare.Run(ctx, inputs, o); !errors.Is(err, cause) {
			t.Errorf("%v", err)
		}
		close(s.end)
		if _, err := os.Stat(o.Out); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("left %v", contents(t, o.Out))
		}
	}
}

// The last document goes whole, however many chunks it has, in files with a header and without, and empty ones behind it go along. What comes of it does not depend on the threads.
func TestLastDocument(t *testing.T) {
	long := strings.Repeat("many words ", 100_000)
	in := tree(t, map[string]string{"a": "first words", "b": "second", "c": long, "d": "", "e": ""})
	for name, c := range map[string]struct {
		tok        tokenizer.Tokenizer
		train, val string
		docs       [2]int64
	}{
		"bytes":  {tokenizer.Bytes(), "first wordssecond", long, [2]int64{2, 3}},
		"uint16": {mine(t, 300), "first words|second|", long + "|||", [2]int64{2, 3}},
		"uint32": {mine(t, 70_000), "first words|second|", long + "|||", [2]int64{2, 3}},
	} {
		for _, threads := range []int{1, 3} {
			o := options(filepath.Join(t.TempDir(), "out"), c.tok)
			o.Threads = threads
			res := must(prepare.Run(t.Context(), []string{in}, o))(t)
			eot, _ := c.tok.EndOfText()
			train, val := text(ids(t, filepath.Join(o.Out, "train.bin"), c.tok.Vocab()), eot), text(ids(t, filepath.Join(o.Out, "val.bin"), c.tok.Vocab()), eot)
			if train != c.train || val != c.val {
				t.Errorf("%s: %d and %d characters, want %d and %d", name, len(train), len(val), len(c.train), len(c.val))
			}
			m := res.Meta
			if got := [2]int64{m.Train.Documents, m.Val.Documents}; got != c.docs || m.Train.Bytes+m.Val.Bytes != int64(len("first wordssecond")+len(long)) || !res.LastHeldOut {
				t.Errorf("%s: documents %v, bytes %d and %d, %t", name, got, m.Train.Bytes, m.Val.Bytes, res.LastHeldOut)
			}
		}
	}
}

// What a killed run left goes with the next run into the folder, other hidden files stay, and two runs at a time do not meet.
func TestLeftovers(t *testing.T) {
	in := writeFile(t, "a", "0123456789")
	out := t.TempDir()
	mine := []string{".1-train.bin.txt", ".notes", ".x-train.bin", ".12-other"}
	for _, name := range append([]string{".123-train.bin", ".4-val.bin", ".5-stdin", ".6-meta.json", ".7-vocab.json"}, mine...) {
		if err := os.WriteFile(filepath.Join(out, name), []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := &stop{reading: make(chan struct{}), end: make(chan struct{})}
	o := options(out, tokenizer.Bytes())
	o.Stdin = s
	first := make(chan error)
	go func() {
		_, err := prepare.Run(t.Context(), []string{"-"}, o)
		first <- err
	}()
	<-s.reading
	if _, err := prepare.Run(t.Context(), []string{in}, options(out, tokenizer.Bytes())); !errors.Is(err, prepare.ErrExists) || !strings.Contains(err.Error(), "another process prepares in it") {
		t.Errorf("two at a time: %v", err)
	}
	close(s.end)
	if err := <-first; err != nil {
		t.Error(err)
	}
	want := append([]string{"meta.json", "train.bin", "val.bin"}, mine...)
	slices.Sort(want)
	if got := slices.Sorted(maps.Keys(contents(t, out))); !slices.Equal(got, want) {
		t.Errorf("left %v, want %v", got, want)
	}
}

func TestForce(t *testing.T) {
	in := writeFile(t, "a", "0123456789")
	o := options(t.TempDir(), tokenizer.Bytes())
	must(prepare.Run(t.Context(), []string{in}, o))(t)
	o.Val, o.Force = 0, true
	must(prepare.Run(t.Context(), []string{in}, o))(t)
	if got := slices.Sorted(maps.Keys(contents(t, o.Out))); !slices.Equal(got, []string{"meta.json", "train.bin"}) {
		t.Errorf("the validation part of before is still there: %v", got)
	}
	// A failed run leaves what was there.
	before := contents(t, o.Out)
	if _, err := prepare.Run(t.Context(), []string{writeFile(t, "b", "")}, o); !errors.Is(err, prepare.ErrEmpty) || !maps.Equal(contents(t, o.Out), before) {
		t.Errorf("%v; %v", err, contents(t, o.Out))
	}
}

// The forms of files: raw uint16 up to a vocabulary of 65,535, and llm.c's header with uint32 beyond.
func TestForms(t *testing.T) {
	in := tree(t, map[string]string{"a": "A", "b": "B"})
	for eot, wide := range map[int]bool{65_534: false, 65_535: true, 70_000: true} {
		o := options(filepath.Join(t.TempDir(), "out"), mine(t, eot))
		o.Val = 0.5
		must(prepare.Run(t.Context(), []string{in}, o))(t)
		var want []byte
		if wide {
			want = must(binary.Append(nil, binary.LittleEndian, [256]int32{20240801, 7, 2}))(t)
			want = must(binary.Append(want, binary.LittleEndian, []uint32{'A', uint32(eot)}))(t)
		} else {
			want = must(binary.Append(nil, binary.LittleEndian, []uint16{'A', uint16(eot)}))(t)
		}
		if got := contents(t, o.Out)["train.bin"]; got != string(want) {
			t.Errorf("vocabulary %d: % x", eot+1, got)
		}
	}
}
