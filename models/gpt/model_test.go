package gpt

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"zeroshard/models"
	"zeroshard/prng"
	"zeroshard/shard"
)

// Names and shapes are Hugging Face's; what does not decay has one dimension.
func TestParameters(t *testing.T) {
	want := `root
wte.weight [11 6]
wpe.weight [7 6]
ln_f.weight [6] no decay
ln_f.bias [6] no decay
h.0
h.0.ln_1.weight [6] no decay
h.0.attn.c_attn.weight [6 18]
h.0.attn.c_proj.weight [6 6]
h.0.ln_2.weight [6] no decay
h.0.mlp.c_fc.weight [6 24]
h.0.mlp.c_proj.weight [24 6]
h.0.ln_1.bias [6] no decay
h.0.attn.c_attn.bias [18] no decay
h.0.attn.c_proj.bias [6] no decay
h.0.ln_2.bias [6] no decay
h.0.mlp.c_fc.bias [24] no decay
h.0.mlp.c_proj.bias [6] no decay
`
	cfg := change(func(c *Config) { c.Layers = 1 })
	if got := list(cfg); got != want {
		t.Errorf("parameters:\n%s", got)
	}
	cfg.Bias = false
	var weights []string
	for _, line := range strings.SplitAfter(want, "\n") {
		if !strings.Contains(line, ".bias") {
			weights = append(weights, line)
		}
	}
	if got := list(cfg); got != strings.Join(weights, "") {
		t.Errorf("without biases:\n%s", got)
	}
}

func list(cfg Config) string {
	var b strings.Builder
	for _, f := range build(cfg, logitsBudget).Flats() {
		fmt.Fprintln(&b, f.Name)
		for _, p := range f.Params {
			fmt.Fprint(&b, p.Name, " ", p.Shape)
			if p.NoDecay {
				fmt.Fprint(&b, " no decay")
			}
			fmt.Fprintln(&b)
		}
	}
	return b.String()
}

// The constants that index Call.P are the places of the parameters they are named after.
func TestIndices(t *testing.T) {
	m := build(odd, logitsBudget)
	for i, want := range map[int]string{wte: "wte.weight", wpe: "wpe.weight", lnfW: "ln_f.weight", lnfB: "ln_f.bias"} {
		if got := m.Flats()[0].Params[i].Name; got != want {
			t.Errorf("root: parameter %d is %s, want %s", i, got, want)
		}
	}
	for i, want := range map[int]string{ln1W: "ln_1.weight", qkvW: "attn.c_attn.weight", attW: "attn.c_proj.weight", ln2W: "ln_2.weight",
		fcW: "mlp.c_fc.weight", projW: "mlp.c_proj.weight", ln1B: "ln_1.bias", qkvB: "attn.c_attn.bias", attB: "attn.c_proj.bias",
		ln2B: "ln_2.bias", fcB: "mlp.c_fc.bias", projB: "mlp.c_proj.bias"} {
		if got := m.Flats()[2].Params[i].Name; got != "h.1."+want {
			t.Errorf("block: parameter %d is %s, want %s", i, got, want)
		}
	}
}

// What a leaf of GPT-2 124M needs, by hand.
func TestSizes(t *testing.T) {
	cfg, err := Preset("gpt2")
	if err != nil {
		t.Fatal(err)
	}
	m, s := build(cfg, logitsBudget), models.Shape{Batch: 1, Seq: 1024}
	const n, d, v = 1024, 768, 50257
	units := m.Units()
	for _, c := range []struct {
		unit int
		mode models.Mode
		want models.Sizes
	}{
		{0, models.Train, models.Sizes{Out: n * d}},
		{1, models.Train, models.Sizes{Out: n * d, Saved: n * (9*d + 12 + 4), Work: 4 * n * d, BackWork: 8 * n * d,
			Flops: 2*n*12*d*d + 4*d*n*(n+1)/2}},
		{13, models.Train, models.Sizes{Work: 256 * (d + v + 2), Flops: 2 * n * d * v}},
		{13, models.Eval, models.Sizes{Work: 256 * (d + v + 2), Flops: 2 * n * d * v}},
		{13, models.Logits, models.Sizes{Out: v, Work: 2*d + 2, Flops: 2 * d * v}},
	} {
		if got := units[c.unit].Sizes(s, c.mode); got != c.want {
			t.Errorf("%s, %s: %+v, want %+v", units[c.unit].Name(), c.mode, got, c.want)
		}
	}
	forward := int64(0)
	for _, u := range units {
		forward += u.Sizes(s, models.Train).Flops
	}
	const perToken = 6*(124_439_808-1024*768) + 6*12*768*1024 // 6N + 6·L·C·T, the usual estimate
	if got := float64(3*forward) / n; math.Abs(got/perToken-1) > 0.01 {
		t.Errorf("%.4g operations a token, the usual estimate is %.4g", got, float64(perToken))
	}
}

// Products of shapes beyond 2³¹ and 2³² stay exact (pains row 67).
func TestSizesBeyond32Bits(t *testing.T) {
	cfg, err := Preset("1t")
	if err != nil {
		t.Fatal(err)
	}
	m, s := build(cfg, logitsBudget), models.Shape{Batch: 512, Seq: 2048}
	const n, d = 512 * 2048, 25600
	got := m.Units()[1].Sizes(s, models.Train)
	if want := n * (9*d + 160 + 4); got.Saved != want || want < 1<<37 {
		t.Errorf("saved %d, want %d", got.Saved, want)
	}
	if want := int64(2)*n*12*d*d + 2*d*n*2049; got.Flops != want || want < 1<<53 {
		t.Errorf("operations %d, want %d", got.Flops, want)
	}
}

func TestChunk(t *testing.T) {
	for _, c := range []struct{ budget, vocab, batch, seq, want int }{
		{1 << 24, 50257, 1, 1024, 256}, // 4 chunks: 333 tokens would fit
		{1 << 24, 50257, 2, 2048, 316}, // 13 chunks
		{1 << 24, 256, 8, 128, 1024},   // one
		{1 << 24, 1 << 30, 1, 40, 14},  // the budget gives way: 3 chunks of at most 16
		{1 << 24, 50257, 1, 1, 1},
		{1 << 24, 50257, 1, 334, 167},
		{1, 11, 4, 5, 10},
	} {
		l := newLoss(Config{Vocab: c.vocab, Width: 4, Positions: c.seq}, c.budget).(*loss)
		s := models.Shape{Batch: c.batch, Seq: c.seq}
		got := l.chunk(s)
		if got != c.want {
			t.Errorf("%+v: chunks of %d", c, got)
		}
		if most := max(c.budget, minChunk*c.vocab); got*c.vocab > most {
			t.Errorf("%+v: %d logits at a time, at most %d", c, got*c.vocab, most)
		}
	}
}

func TestInit(t *testing.T) {
	cfg := Config{Layers: 8, Heads: 4, Width: 64, Vocab: 101, Positions: 32, Bias: true}
	m := build(cfg, logitsBudget)
	for _, f := range m.Flats() {
		for _, p := range f.Params {
			v := make([]float32, p.Len())
			m.Init(prng.New(5), p, 0, v)
			mean, dev := moments(v)
			wantMean, wantDev := 0.0, 0.02
			switch {
			case strings.HasSuffix(p.Name, ".bias"):
				wantDev = 0
			case strings.Contains(p.Name, "ln_"):
				wantMean, wantDev = 1, 0
			case strings.HasSuffix(p.Name, "c_proj.weight"):
				wantDev = 0.02 / 4 // √(2·8)
			}
			n := math.Sqrt(float64(len(v)))
			if math.Abs(mean-wantMean) > 4*wantDev/n || math.Abs(dev-wantDev) > 4*wantDev/n {
				t.Errorf("%s: mean %.3g, deviation %.3g; want %.3g, %.3g", p.Name, mean, dev, wantMean, wantDev)
			}
		}
	}
}

func moments(v []float32) (mean, dev float64) {
	for _, x := range v {
		mean += float64(x) / float64(len(v))
	}
	for _, x := range v {
		dev += (float64(x) - mean) * (float64(x) - mean) / float64(len(v))
	}
	return mean, math.Sqrt(dev)
}

// Golden initial values: a change here changes every run.
func TestInitGolden(t *testing.T) {
	m := build(odd, logitsBudget)
	var got []string
	for _, p := range []shard.Param{m.flats[0].Params[wte], m.flats[2].Params[projW]} {
		v := make([]float32, 3)
		m.Init(prng.New(1337), p, 5, v)
		for _, x := range v {
			got = append(got, fmt.Sprintf("%x", x))
		}
	}
	want := []string{"-0x1.8e784cp-06", "0x1.0a8e5p-05", "0x1.e99a6ep-10", "-0x1.c9a8ccp-08", "-0x1.0b7014p-07", "-0x1.c3e394p-12"}
	if !slices.Equal(got, want) {
		t.Errorf("initial values %q", got)
	}
}
