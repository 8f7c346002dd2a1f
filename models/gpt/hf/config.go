package hf

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"zeroshard/models/gpt"
)

// configFile is the name of a folder's configuration.
const configFile = "config.json"

// settings are the fields of config.json that change what a model computes. A field that is missing has the value that transformers'
// GPT2Config gives it: parseConfig begins with those.
type settings struct {
	Architectures []string `json:"architectures"`
	ModelType     *string  `json:"model_type"`
	dimensions
	numbers
	switches
}

type dimensions struct {
	Vocab     int  `json:"vocab_size"`
	Positions int  `json:"n_positions"`
	Width     int  `json:"n_embd"`
	Layers    int  `json:"n_layer"`
	Heads     int  `json:"n_head"`
	Inner     *int `json:"n_inner"`
}

type numbers struct {
	Eps       float64 `json:"layer_norm_epsilon"`
	EmbdDrop  float64 `json:"embd_pdrop"`
	AttnDrop  float64 `json:"attn_pdrop"`
	ResidDrop float64 `json:"resid_pdrop"`
}

type switches struct {
	EndOfText      json.RawMessage            `json:"eos_token_id"` // a number, a list of them, or null
	Activation     string                     `json:"activation_function"`
	Tied           *bool                      `json:"tie_word_embeddings"`
	ScaleWeights   bool                       `json:"scale_attn_weights"`
	ScaleByLayer   bool                       `json:"scale_attn_by_inverse_layer_idx"`
	Reorder        bool                       `json:"reorder_and_upcast_attn"`
	CrossAttention bool                       `json:"add_cross_attention"`
	Pruned         map[string]json.RawMessage `json:"pruned_heads"`
	Quantization   json.RawMessage            `json:"quantization_config"`
}

// tied says whether logits come from wte.weight.
func (s *settings) tied() bool { return s.Tied == nil || *s.Tied }

// parseConfig reads config.json. Errors: ErrFolder (no JSON, or of another shape), ErrUnsupported, and gpt.ErrConfig with ErrFolder: all that
// is wrong at once, on one line.
func parseConfig(text []byte) (*settings, gpt.Config, error) {
	s := &settings{
		dimensions: dimensions{Vocab: 50257, Positions: 1024, Width: 768, Layers: 12, Heads: 12},
		numbers:    numbers{Eps: 1e-5, EmbdDrop: 0.1, AttnDrop: 0.1, ResidDrop: 0.1},
		switches:   switches{Activation: "gelu_new", ScaleWeights: true},
	}
	if err := json.Unmarshal(text, s); err != nil {
		return nil, gpt.Config{}, fmt.Errorf("%w: %s: %w", ErrFolder, configFile, err)
	}
	c := gpt.Config{Layers: s.Layers, Heads: s.Heads, Width: s.Width, Vocab: s.Vocab, Positions: s.Positions, Bias: true, Eps: float32(s.Eps)}
	if s.Inner != nil {
		c.Inner = *s.Inner
	}
	bad := s.judge()
	if len(bad) == 0 { // else its values may be so wrong that they are told twice
		if err := c.Validate(); err != nil {
			bad = append(bad, fmt.Errorf("%w: %w", ErrFolder, err))
		}
	}
	if len(bad) > 0 {
		return nil, gpt.Config{}, fmt.Errorf("%s: %w", configFile, bad)
	}
	return s, c, nil
}

// joined is errors.Join on one line.
func joined(errs []error) error {
	if len(errs) == 0 {
		return nil
	}
	return reasons(errs)
}

// reasons is several faults of one file, on one line.
type reasons []error

func (r reasons) Error() string {
	text := make([]string, len(r))
	for i, err := range r {
		text[i] = strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	return strings.Join(text, "; ")
}

func (r reasons) Unwrap() []error { return r }

// judge returns everything that package gpt cannot do.
func (s *settings) judge() (errs reasons) {
	refuse := func(bad bool, sentinel error, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf("%w: "+format, append([]any{sentinel}, args...)...))
		}
	}
	gpt2 := s.ModelType != nil && *s.ModelType == "gpt2"
	if s.ModelType == nil {
		gpt2 = len(s.Architectures) > 0 && strings.HasPrefix(s.Architectures[0], "GPT2")
		refuse(!gpt2, ErrUnsupported, "there is no model_type, and architectures is %q: only gpt2 is read", s.Architectures)
	} else {
		refuse(!gpt2, ErrUnsupported, "model_type is %q, only gpt2 is read", *s.ModelType)
	}
	if !gpt2 {
		return errs // the other fields mean nothing here
	}
	tanh := s.Activation == "gelu_new" || s.Activation == "gelu_pytorch_tanh"
	refuse(!tanh, ErrUnsupported, "activation_function is %q, only gelu_new and gelu_pytorch_tanh (the tanh form of GELU) are computed", s.Activation)
	refuse(!s.ScaleWeights, ErrUnsupported, "scale_attn_weights is false: attention is always divided by the root of a head's width")
	refuse(s.ScaleByLayer, ErrUnsupported, "scale_attn_by_inverse_layer_idx is true: attention is not scaled by layer")
	refuse(s.Reorder, ErrUnsupported, "reorder_and_upcast_attn is true: attention is computed in one order and precision")
	refuse(s.CrossAttention, ErrUnsupported, "add_cross_attention is true: there is no encoder to attend to")
	refuse(len(s.Pruned) > 0, ErrUnsupported, "pruned_heads names heads of %d layers: all heads are computed", len(s.Pruned))
	refuse(len(s.Quantization) > 0 && string(s.Quantization) != "null", ErrUnsupported, "quantization_config is set: quantized weights are not read")
	refuse(s.Inner != nil && *s.Inner < 1, ErrFolder, "n_inner is %d, must be null or at least 1", deref(s.Inner))
	// gpt.Config takes 0 for its default, which no folder means.
	refuse(!(s.Eps > 0 && float32(s.Eps) > 0), ErrFolder, "layer_norm_epsilon is %v, must be over 0", s.Eps)
	for _, d := range []struct {
		name string
		p    float64
	}{{"embd_pdrop", s.EmbdDrop}, {"attn_pdrop", s.AttnDrop}, {"resid_pdrop", s.ResidDrop}} {
		refuse(!(d.p >= 0 && d.p <= 1), ErrFolder, "%s is %v, must be 0 to 1", d.name, d.p)
	}
	return errs
}

// endOfText is the one token that ends a text, false where there is none, or several, or one that the vocabulary has not: GPT2Config
// says 50256 of every vocabulary.
func (s *settings) endOfText() (id int, ok bool) {
	err := json.Unmarshal(s.EndOfText, &id)
	return id, err == nil && string(s.EndOfText) != "null" && id >= 0 && id < s.Vocab
}

func deref(p *int) int {
	if p == nil {
		return math.MinInt
	}
	return *p
}
