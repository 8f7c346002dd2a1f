package prepare

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"strings"
	"testing"

	"zeroshard/data/tokenizer"
)

// beyond is a tokenizer whose ids are not all in its vocabulary.
type beyond struct {
	tokenizer.Tokenizer
	id int32
}

func (b beyond) Encode(dst []int32, _ string) []int32 { return append(dst, 1, b.id) }

// Ids that do not fit are refused, never wrapped.
func TestIDsThatDoNotFit(t *testing.T) {
	for _, id := range []int32{256, 65_536 + 7, -1, math.MinInt32} {
		o := &Options{Tokenizer: beyond{tokenizer.Bytes(), id}, Threads: 1}
		p := newPipe(o, &inputs{}, newSplit(0.1))
		if _, err := p.encodeChunk(&chunk{items: []item{{text: "x"}}}, nil); !errors.Is(err, ErrID) || !strings.Contains(err.Error(), "its vocabulary has 256") {
			t.Errorf("id %d: %v", id, err)
		}
	}
}

func TestHeaderCount(t *testing.T) {
	p := &partFile{name: "train.bin", width: 4, mark: mark{tokens: math.MaxInt32}, w: bufio.NewWriter(io.Discard)}
	if err := p.take(nil, 0, 0); err != nil {
		t.Errorf("the largest count: %v", err)
	}
	if err := p.take(make([]byte, 4), 0, 0); !errors.Is(err, ErrID) || !strings.Contains(err.Error(), "several runs") {
		t.Errorf("one more: %v", err)
	}
}

func TestLineLimit(t *testing.T) {
	l := newLineReader("a.jsonl", "text", strings.NewReader(`{"text": "a"}`+"\n"+`{"text": "`+strings.Repeat("x", 100)+`"}`))
	l.limit = 50
	if text, err := l.next(); text != "a" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := l.next(); !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), "line 2: longer than 50 bytes") {
		t.Errorf("%v", err)
	}
}

// A byte-order mark at the beginning of a file is none of its text, and anywhere else it is.
func TestByteOrderMark(t *testing.T) {
	const mark = "\xEF\xBB\xBF"
	l := newLineReader("a.jsonl", "text", strings.NewReader(mark+`{"text": "`+mark+`a"}`+"\n"+mark+`{"text": "b"}`))
	if text, err := l.next(); text != mark+"a" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := l.next(); !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), "line 2: want a JSON object") {
		t.Errorf("%v", err)
	}
	for _, short := range []string{"", mark, mark[:2]} {
		if text, err := newLineReader("a.jsonl", "text", strings.NewReader(short)).next(); err == nil {
			t.Errorf("%q: %q", short, text)
		}
	}
}

// The cuts of nanoGPT, and no overflow.
func TestSplit(t *testing.T) {
	s := newSplit(0.1)
	if got := s.cut(1_115_394); got != 1_003_854 { // tiny Shakespeare
		t.Errorf("cut at %d", got)
	}
	if got := newSplit(0.999999).share(math.MaxInt64); got < math.MaxInt64/1_000_000*999_999 {
		t.Errorf("overflow: %d", got)
	}
	val := int64(0)
	for i := range int64(1000) {
		if s.next() == valPart {
			if val++; i%10 != 9 {
				t.Errorf("document %d is for validation", i)
			}
		}
	}
	if val != 100 {
		t.Errorf("%d of 1000", val)
	}
}

func TestRuneStart(t *testing.T) {
	path := t.TempDir() + "/a"
	if err := os.WriteFile(path, []byte("aé😀\x80\x80\x80\x80\x80"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for at, want := range map[int64]int64{0: 0, 1: 1, 2: 1, 3: 3, 4: 3, 6: 3, 11: 11, 12: 12} {
		if got, err := runeStart(f, at); got != want || err != nil {
			t.Errorf("byte %d: %d, %v, want %d", at, got, err, want)
		}
	}
}

// FuzzLines: whatever the bytes, a line is a document or an error that names it; what was written as JSONL is read as it was.
func FuzzLines(f *testing.F) {
	f.Add("{\"text\": \"a\"}\n\n{\"text\": \"b\\u00e9\"}")
	f.Add("[1]\n{\"text\": null}")
	f.Add("\xff{\"text\"")
	f.Fuzz(func(t *testing.T, raw string) {
		l := newLineReader("a.jsonl", "text", strings.NewReader(raw))
		for n := 0; ; n++ {
			if n > len(raw) {
				t.Fatal("more documents than bytes")
			}
			_, err := l.next()
			if err == io.EOF {
				break
			}
			var ie *InputError
			if errors.As(err, &ie) {
				if ie.Line < 1 || ie.Line > 1+strings.Count(raw, "\n") {
					t.Fatalf("line %d", ie.Line)
				}
				break
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		want := strings.ToValidUTF8(raw, "\uFFFD")
		line, err := json.Marshal(map[string]string{"id": "x", "text": want})
		if err != nil {
			t.Fatal(err)
		}
		l = newLineReader("b.jsonl", "text", strings.NewReader("\n"+string(line)+"\r\n"))
		if got, err := l.next(); got != want || err != nil {
			t.Errorf("%q came back as %q, %v", want, got, err)
		}
	})
}
