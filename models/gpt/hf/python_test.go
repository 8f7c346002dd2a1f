package hf_test

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gorgonia.org/tensor"

	"zeroshard"
	"zeroshard/checkpoint/safetensors"
	"zeroshard/models/gpt"
	"zeroshard/models/gpt/hf"
	"zeroshard/zero"
)

// interpreter skips the test where ZEROSHARD_HF_PYTHON names no Python: test/hf/run.sh installs one.
func interpreter(t *testing.T) string {
	t.Helper()
	python := os.Getenv("ZEROSHARD_HF_PYTHON")
	if python == "" {
		t.Skip("ZEROSHARD_HF_PYTHON names no Python with transformers: make hf")
	}
	return python
}

// python runs a script of test/hf.
func python(t *testing.T, script string, args ...string) {
	t.Helper()
	cmd := exec.Command(interpreter(t), append([]string{filepath.Join("..", "..", "..", "test", "hf", script)}, args...)...)
	cmd.Env = append(os.Environ(), "TQDM_DISABLE=1")
	out, err := cmd.CombinedOutput()
	t.Logf("%s\n%s", script, out)
	if err != nil {
		t.Fatalf("%s: %v", script, err)
	}
}

// answers are what a model is asked and what it says; see test/hf/gpt2.py.
type answers struct {
	Refused string      `json:"refused,omitempty"` // why a folder must not be read
	Tokens  []int32     `json:"tokens"`
	Prompt  []int32     `json:"prompt"`
	Logits  [][]float32 `json:"logits"` // after each prefix of Tokens but the whole
	Loss    float64     `json:"loss"`
	Greedy  []int32     `json:"greedy"`
	// What the folder says, where we wrote it.
	DType string  `json:"dtype"`
	End   *int    `json:"end"`
	Eps   float64 `json:"eps"`
}

// ask puts the same questions to a model whose parameters read gives, on two ranks at stage 3.
func ask(t *testing.T, c gpt.Config, read hf.Reader, a *answers) {
	t.Helper()
	ctx := context.Background()
	m, err := gpt.New(c)
	if err != nil {
		t.Fatal(err)
	}
	seq := len(a.Tokens) - 1
	cl, err := zeroshard.Local(ctx, zeroshard.Config{Model: m, Ranks: 2, Stage: 3, GlobalBatch: 2, MicroBatch: 1, Seq: seq})
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	for _, p := range params(t, c) {
		v := make([]float32, p.Len())
		if err := read(p.Name, 0, v); err != nil {
			t.Fatal(err)
		}
		if err := cl.Set(ctx, p.Name, tensor.New(tensor.WithShape(p.Shape...), tensor.WithBacking(v))); err != nil {
			t.Fatal(err)
		}
	}
	a.Logits, a.Greedy = nil, nil
	for n := 1; n <= seq; n++ {
		v, err := cl.Logits(ctx, a.Tokens[:n])
		if err != nil {
			t.Fatal(err)
		}
		a.Logits = append(a.Logits, slices.Clone(v))
	}
	loss, err := cl.Eval(ctx, func(int) (zero.Batch, error) { return zero.Batch{Tokens: a.Tokens[:seq], Targets: a.Tokens[1:]}, nil })
	if err != nil {
		t.Fatal(err)
	}
	a.Loss = loss.Mean()
	text := slices.Clone(a.Prompt)
	for len(text) < seq {
		v, err := cl.Logits(ctx, text)
		if err != nil {
			t.Fatal(err)
		}
		best := 0
		for i := range v {
			if v[i] > v[best] {
				best = i
			}
		}
		text = append(text, int32(best))
	}
	a.Greedy = text[len(a.Prompt):]
}

// Folders that transformers wrote mean here what they mean there.
func TestPythonFoldersAreRead(t *testing.T) {
	dir := t.TempDir()
	python(t, "make.py", dir)
	found, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	read, refused := 0, 0
	for _, path := range found {
		folder := strings.TrimSuffix(path, ".json")
		t.Run(filepath.Base(folder), func(t *testing.T) {
			var want answers
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(text, &want); err != nil {
				t.Fatal(err)
			}
			f, err := hf.Open(folder)
			if want.Refused != "" {
				refused++
				if !(errors.Is(err, hf.ErrUnsupported) || errors.Is(err, hf.ErrTensors)) || !strings.Contains(err.Error(), want.Refused) {
					t.Errorf("%v does not say %q", err, want.Refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			read++
			got := answers{Tokens: want.Tokens, Prompt: want.Prompt}
			ask(t, f.Config(), f.Read, &got)
			compare(t, &got, &want)
		})
	}
	if read < 11 || refused < 8 {
		t.Errorf("%d folders were read and %d refused", read, refused)
	}
}

func compare(t *testing.T, got, want *answers) {
	t.Helper()
	worst := 0.0
	for i := range want.Logits {
		for j, v := range want.Logits[i] {
			if d := math.Abs(float64(got.Logits[i][j]) - float64(v)); !(d <= worst) {
				worst = d
			}
		}
	}
	n := min(len(got.Greedy), len(want.Greedy)) // ours ends where the window does
	t.Logf("logits within %.1e, loss within %.1e, %d greedy tokens %v", worst, math.Abs(got.Loss-want.Loss), n, got.Greedy[:n])
	if len(got.Logits) != len(want.Logits) || !(worst <= 1e-4) {
		t.Errorf("%d rows of logits (want %d) differ by up to %v", len(got.Logits), len(want.Logits), worst)
	}
	if !(math.Abs(got.Loss-want.Loss) <= 1e-5) {
		t.Errorf("loss %v, want %v", got.Loss, want.Loss)
	}
	if n < 10 || !slices.Equal(got.Greedy[:n], want.Greedy[:n]) {
		t.Errorf("greedy text %v, want %v", got.Greedy, want.Greedy)
	}
}

// Folders that we wrote mean there what they mean here.
func TestPythonReadsFolders(t *testing.T) {
	interpreter(t)
	dir, end := t.TempDir(), 3
	full := gpt.Config{Layers: 2, Heads: 4, Width: 32, Vocab: 61, Positions: 24, Bias: true, Dropout: 0.1}
	inner, bare := full, full
	inner.Inner, inner.Eps = 40, 0.01
	bare.Bias = false
	for name, e := range map[string]hf.Export{
		"plain":  {Config: full, EndOfText: &end},
		"shards": {Config: full, ShardBytes: 20_000},
		"bf16":   {Config: full, DType: safetensors.BF16},
		"fp16":   {Config: full, DType: safetensors.F16, ShardBytes: 10_000},
		"inner":  {Config: inner, EndOfText: &end},
		"bare":   {Config: bare},
	} {
		folder := filepath.Join(dir, name)
		if err := hf.Write(folder, e, spread); err != nil {
			t.Fatal(err)
		}
		a := answers{DType: "float32", End: e.EndOfText, Eps: 1e-5}
		if e.Config.Eps != 0 {
			a.Eps = float64(e.Config.Eps)
		}
		switch e.DType {
		case safetensors.BF16:
			a.DType = "bfloat16"
		case safetensors.F16:
			a.DType = "float16"
		}
		for i := range 21 {
			a.Tokens = append(a.Tokens, int32(i*i*7+3*i)%61)
		}
		a.Prompt = a.Tokens[4:8]
		read := hf.Reader(spread) // what we exported, so that a model without biases is asked too; what was rounded, from the folder
		if e.DType != "" {
			f, err := hf.Open(folder)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			read = f.Read
		}
		ask(t, e.Config, read, &a)
		text, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		write(t, dir, name+".json", text)
	}
	python(t, "check.py", dir)
}

// spread gives values under which every part of a model matters: norms about 1, the rest about 0, none of them in 16 bits.
func spread(name string, lo int, dst []float32) error {
	norm := strings.Contains(name, "ln_") && strings.HasSuffix(name, "weight")
	for i := range dst {
		dst[i] = value(name, lo+i) / 11
		if norm {
			dst[i]++
		}
	}
	return nil
}
