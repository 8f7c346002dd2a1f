package gpt

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"zeroshard/models"
)

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		name string
		cfg  Config
		say  []string // one for each fault
	}{
		{"fine", odd, nil},
		{"inner and eps given", change(func(c *Config) { c.Inner, c.Eps = 5, 1e-6 }), nil},
		{"zero", Config{}, []string{"layers is 0", "heads is 0", "width is 0", "vocabulary is 0", "positions is 0", "inner width is 0"}},
		{"heads", change(func(c *Config) { c.Heads = 4 }), []string{"width 6 is not a multiple of 4 heads"}},
		{"negative inner", change(func(c *Config) { c.Inner = -1 }), []string{"inner width is -1"}},
		{"dropout of 1", change(func(c *Config) { c.Dropout = 1 }), []string{"dropout is 1"}},
		{"dropout NaN", change(func(c *Config) { c.Dropout = float32(math.NaN()) }), []string{"dropout is NaN"}},
		{"eps", change(func(c *Config) { c.Eps = -1 }), []string{"eps is -1"}},
		{"beyond 64 bits", change(func(c *Config) { c.Width, c.Heads, c.Inner = 1<<40, 1, 1 }), []string{"width is 1099511627776"}},
		{"three at once", Config{Layers: -1, Heads: 3, Width: 4, Vocab: 5, Positions: 6, Dropout: -0.5},
			[]string{"layers is -1", "not a multiple of 3", "dropout is -0.5"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := c.cfg.Validate()
			if _, newErr := New(c.cfg); fmt.Sprint(newErr) != fmt.Sprint(err) {
				t.Errorf("New says %v, Validate %v", newErr, err)
			}
			if len(c.say) == 0 {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !errors.Is(err, ErrConfig) {
				t.Fatalf("error %v", err)
			}
			if n := len(strings.Split(err.Error(), "\n")); n != len(c.say) {
				t.Errorf("%d faults, want %d:\n%v", n, len(c.say), err)
			}
			for _, s := range c.say {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("%v\ndoes not say %q", err, s)
				}
			}
		})
	}
}

func TestCheckShape(t *testing.T) {
	m, err := New(odd)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.CheckShape(models.Shape{Batch: 3, Seq: 7}); err != nil {
		t.Error(err)
	}
	if err := m.CheckShape(models.Shape{Batch: 3, Seq: 8}); !errors.Is(err, ErrShape) || !strings.Contains(err.Error(), "8 tokens, the model has 7 positions") {
		t.Error(err)
	}
}

// The sizes that papers and checkpoints state.
func TestPresetSizes(t *testing.T) {
	for _, c := range []struct {
		name   string
		params int
		near   float64 // relative distance allowed from params
	}{
		{"micro", 17_208, 0}, // 97·24 + 16·24 + 2·24 + 2·(12·24² + 13·24)
		{"gpt2", 124_439_808, 0},
		{"gpt2-medium", 354_823_168, 0},
		{"gpt2-large", 774_030_080, 0},
		{"gpt2-xl", 1_557_611_200, 0},
		{"7.5b", 7_500_000_000, 0.01},
		{"13b", 13_000_000_000, 0.02},
		{"128b", 128_000_000_000, 0.01},
		{"175b", 175_000_000_000, 0.01},
		{"1t", 1_000_000_000_000, 0.01},
	} {
		cfg, err := Preset(c.name)
		if err != nil {
			t.Fatal(err)
		}
		m, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if far := math.Abs(float64(m.Params()-c.params)) / float64(c.params); far > c.near {
			t.Errorf("%s has %d parameters, want %d", c.name, m.Params(), c.params)
		}
	}
}

func TestPreset(t *testing.T) {
	want := "micro tiny small gpt2 gpt2-medium gpt2-large gpt2-xl 7.5b 13b 128b 175b 1t"
	if got := strings.Join(Presets(), " "); got != want {
		t.Errorf("presets %s", got)
	}
	for _, name := range Presets() {
		if c, err := Preset(name); err != nil || c.Validate() != nil || !c.Bias || c.Dropout != 0 {
			t.Errorf("%s: %+v, %v", name, c, err)
		}
	}
	for _, c := range []struct{ name, say string }{
		{"tinny", `unknown preset "tinny": did you mean tiny?`},
		{"gpt2-larg", "did you mean gpt2-large"},
		{"GPT2", "did you mean gpt2"},
		{"gpt2-", "gpt2 or gpt2-xl or gpt2-large or gpt2-medium"},
		{"7b", "did you mean 7.5b"},
		{"13B", "did you mean 13b"},
		{"llama", "known are micro, tiny, small, gpt2, gpt2-medium, gpt2-large, gpt2-xl, 7.5b, 13b, 128b, 175b, 1t"},
		{"", "known are micro"},
	} {
		_, err := Preset(c.name)
		if !errors.Is(err, ErrPreset) || !strings.Contains(err.Error(), c.say) || strings.Contains(err.Error(), "\n") {
			t.Errorf("Preset(%q): %v, want %q", c.name, err, c.say)
		}
	}
}

func ExamplePreset() {
	cfg, err := Preset("gpt2")
	if err != nil {
		fmt.Println(err)
		return
	}
	m, err := New(cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(m.Params(), "parameters in", len(m.Flats()), "flats, computed by", len(m.Units()), "units")
	for _, p := range m.Flats()[1].Params[:3] {
		fmt.Println(p.Name, p.Shape)
	}
	// Output:
	// 124439808 parameters in 13 flats, computed by 14 units
	// h.0.ln_1.weight [768]
	// h.0.attn.c_attn.weight [768 2304]
	// h.0.attn.c_proj.weight [768 768]
}
