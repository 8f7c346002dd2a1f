package main

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"zeroshard/kernels/ref"
	"zeroshard/models"
	"zeroshard/models/gpt"
	"zeroshard/models/gpt/hf"
	"zeroshard/models/modeltest"
)

func evaluate(t *testing.T, args ...string) (m measured) {
	t.Helper()
	o := execute(append([]string{"eval", "--json"}, args...)...)
	if o.code != 0 {
		t.Fatalf("exit code %d: %s", o.code, o.stderr)
	}
	if err := json.Unmarshal([]byte(o.stdout), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// byHand is the loss of ids in windows of seq, by the readable kernels, without an engine.
func byHand(t *testing.T, dir string, ids []byte, seq int) (loss float64, tokens int) {
	t.Helper()
	f, err := hf.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m, err := gpt.New(f.Config())
	if err != nil {
		t.Fatal(err)
	}
	for at := 0; at+1 < len(ids); at += seq {
		n := min(seq, len(ids)-1-at)
		l := modeltest.NewLeaf(ref.NewFused(), m, models.Shape{Batch: 1, Seq: n}, f.Config().Vocab)
		for name, v := range l.Params {
			if err := f.Read(name, 0, v); err != nil {
				t.Fatal(err)
			}
		}
		for i := range n {
			l.Tokens[i], l.Targets[i] = int32(ids[at+i]), int32(ids[at+i+1])
		}
		r, err := l.Eval()
		if err != nil {
			t.Fatal(err)
		}
		loss, tokens = loss+r.Loss, tokens+r.Valid
	}
	return loss, tokens
}

// Every token of a file but the first is predicted once, in windows, the short last one too: the loss is that of the windows by hand, and the
// same number whatever the ranks, the stage and the micro-batch.
func TestEvalCoversTheFile(t *testing.T) {
	dir := empty(t)
	from := byteModel(t)
	text := []byte(strings.Repeat("what is measured é. ", 23) + "end")
	path := filepath.Join(dir, "text")
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
	sum, tokens := byHand(t, from, text, 24)
	got := evaluate(t, "--from", from, "--data", path)
	if got.Tokens != len(text)-1 || got.Tokens != tokens || got.Windows != (len(text)-1+23)/24 || got.Seq != 24 || got.Bytes != int64(tokens) {
		t.Errorf("%+v of a text of %d bytes", got, len(text))
	}
	if want := sum / float64(tokens); math.Abs(float64(got.Loss)-want) > 1e-5*want {
		t.Errorf("loss %v, by hand %v", got.Loss, want)
	}
	if p := math.Exp(float64(got.Loss)); float64(got.Perplexity) != p {
		t.Errorf("perplexity %v, want %v", got.Perplexity, p)
	}
	if bits := float64(got.Loss) / math.Ln2; math.Abs(float64(*got.BitsPerByte)-bits) > 1e-12*bits {
		t.Errorf("%v bits a byte, want %v", *got.BitsPerByte, bits)
	}
	for _, more := range []string{"--ranks 2", "--ranks 3 --stage 3", "--micro-batch 1", "--micro-batch 7 --ranks 2", "--micro-batch 1000"} {
		again := evaluate(t, append([]string{"--from", from, "--data", path}, strings.Fields(more)...)...)
		if math.Abs(float64(again.Loss-got.Loss)) > 1e-12 || again.Tokens != got.Tokens {
			t.Errorf("%s: %+v, want %+v", more, again, got)
		}
	}
	few := evaluate(t, "--from", from, "--data", path, "--max-tokens", "50", "--seq", "20")
	if sum, _ := byHand(t, from, text[:51], 20); few.Tokens != 50 || few.Windows != 3 || math.Abs(float64(few.Loss)-sum/50) > 1e-5*sum {
		t.Errorf("the first 50 tokens: %+v, by hand %v", few, sum/50)
	}
	twice := evaluate(t, "--from", from, "--data", path+","+path)
	if twice.Tokens != 2*got.Tokens || math.Abs(float64(twice.Loss-got.Loss)) > 1e-9 {
		t.Errorf("the file twice: %+v", twice)
	}
}

// A .bin file is read as it is, of a folder the val.bin; without a tokenizer there are no bits a byte.
func TestEvalReadsTokens(t *testing.T) {
	dir := empty(t)
	from := folder(t, gpt.Config{Layers: 1, Heads: 1, Width: 8, Vocab: 97, Positions: 16, Bias: true})
	var raw []byte
	ids := make([]byte, 100)
	for i := range ids {
		ids[i] = byte(i * i % 97)
		raw = binary.LittleEndian.AppendUint16(raw, uint16(ids[i]))
	}
	if err := os.WriteFile(filepath.Join(dir, "val.bin"), raw, 0o644); err != nil {
		t.Fatal(err)
	}
	sum, _ := byHand(t, from, ids, 16)
	got := evaluate(t, "--from", from, "--data", dir)
	if got.Tokens != 99 || got.BitsPerByte != nil || math.Abs(float64(got.Loss)-sum/99) > 1e-5*sum {
		t.Errorf("%+v, by hand %v", got, sum/99)
	}
}

// A text is cut into the tokens of the model's vocabulary; bits a byte are of the text's bytes.
func TestEvalCutsTexts(t *testing.T) {
	dir := empty(t)
	from := folder(t, gpt.Config{Layers: 1, Heads: 1, Width: 8, Vocab: 300, Positions: 16, Bias: true})
	vocabulary(t, from)
	path := filepath.Join(dir, "text")
	if err := os.WriteFile(path, []byte("plain text é"), 0o644); err != nil {
		t.Fatal(err)
	}
	got := evaluate(t, "--from", from, "--data", path)
	if got.Tokens != 12 || got.Bytes != 12 || got.BitsPerByte == nil {
		t.Errorf("%+v", got)
	}
	o := execute("eval", "--from", from, "--data", path)
	for _, want := range []string{"loss ", "perplexity ", "bits/byte ", "tokens     12 predicted, in 1 windows of 16"} {
		if o.code != 0 || !strings.Contains(o.stdout, want) {
			t.Errorf("printed %q, want %q", o.stdout, want)
		}
	}
}

func TestEvalRefuses(t *testing.T) {
	dir := empty(t)
	from, odd := byteModel(t), folder(t, gpt.Config{Layers: 1, Heads: 1, Width: 8, Vocab: 300, Positions: 16, Bias: true})
	one := filepath.Join(dir, "one")
	if err := os.WriteFile(one, []byte("1"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, args string
		code       int
		says       string
	}{
		{"no source", "--data " + one, 2, "--from is needed"},
		{"no data", "--from " + from, 2, "--data is needed"},
		{"no such file", "--from " + from + " --data nowhere", 3, "nowhere"},
		{"nothing to predict", "--from " + from + " --data " + one, 2, "nothing to predict"},
		{"long windows", "--from " + from + " --seq 25 --data " + one, 2, "has 24 positions"},
		{"negative windows", "--from " + from + " --seq -1 --data " + one, 2, "--seq -1"},
		{"no micro-batch", "--from " + from + " --micro-batch 0 --data " + one, 2, "--micro-batch 0"},
		{"text of unknown tokens", "--from " + odd + " --data " + one, 2, "pass --tokenizer"},
	} {
		o := execute(append([]string{"eval"}, strings.Fields(c.args)...)...)
		if o.code != c.code || !strings.Contains(o.stderr, c.says) || o.stdout != "" || strings.Count(o.stderr, "\n") != 1 {
			t.Errorf("%s: exit code %d, stdout %q, stderr %q; want %d and %q", c.name, o.code, o.stdout, o.stderr, c.code, c.says)
		}
	}
}
