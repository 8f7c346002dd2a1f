package hf_test

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"zeroshard/checkpoint/safetensors"
	"zeroshard/models/gpt"
	"zeroshard/models/gpt/hf"
)

// variants are the forms in which folders of one model are found.
var variants = []struct {
	name  string
	spoil func(t testing.TB, f *fixture)
}{
	{"as transformers writes it", func(testing.TB, *fixture) {}},
	{"no prefix", func(_ testing.TB, f *fixture) { f.bare() }},
	{"some with the prefix", func(_ testing.TB, f *fixture) {
		f.rename(func(s string) string { return strings.Replace(s, "transformer.h.0.", "h.0.", 1) })
	}},
	{"masks, as the first files had them", func(t testing.TB, f *fixture) {
		f.bare()
		for _, i := range []string{"0", "1"} {
			f.tensors["h."+i+".attn.bias"] = floats32(t, safetensors.F32, []int64{1, 1, 5, 5}, func(int) float32 { return 1 })
			f.tensors["h."+i+".attn.masked_bias"] = floats32(t, safetensors.F32, nil, func(int) float32 { return -1e4 })
		}
	}},
	{"masks of bytes, with the prefix", func(t testing.TB, f *fixture) {
		f.tensors["transformer.h.1.attn.bias"] = stored{safetensors.U8, []int64{1, 1, 5, 5}, make([]byte, 25)}
	}},
	{"head that equals the table", func(_ testing.TB, f *fixture) { f.tensors["lm_head.weight"] = f.tensors["transformer.wte.weight"] }},
	{"untied head that equals the table", func(_ testing.TB, f *fixture) {
		f.config["tie_word_embeddings"] = false
		f.tensors["lm_head.weight"] = f.tensors["transformer.wte.weight"]
	}},
	{"head that equals the table in another type", func(t testing.TB, f *fixture) {
		f.tensors["lm_head.weight"] = floats32(t, safetensors.BF16, []int64{11, 6}, func(i int) float32 { return value("wte.weight", i) })
	}},
	{"tied by name", func(_ testing.TB, f *fixture) { f.config["tie_word_embeddings"] = true }},
	{"bf16", func(t testing.TB, f *fixture) { f.retype(t, safetensors.BF16); f.config["torch_dtype"] = "bfloat16" }},
	{"fp16", func(t testing.TB, f *fixture) { f.retype(t, safetensors.F16); f.config["dtype"] = "float16" }},
	{"two files", func(_ testing.TB, f *fixture) { f.split(2) }},
	{"seven files in fp16", func(t testing.TB, f *fixture) { f.retype(t, safetensors.F16); f.split(7) }},
	{"n_inner by number", func(_ testing.TB, f *fixture) { f.config["n_inner"] = 24 }},
	{"no n_inner", func(_ testing.TB, f *fixture) { delete(f.config, "n_inner") }},
	{"no model_type", func(_ testing.TB, f *fixture) { delete(f.config, "model_type") }},
	{"no architectures", func(_ testing.TB, f *fixture) { delete(f.config, "architectures") }},
	{"PyTorch's name of the activation", func(_ testing.TB, f *fixture) { f.config["activation_function"] = "gelu_pytorch_tanh" }},
	{"defaults left out", func(_ testing.TB, f *fixture) {
		for _, key := range []string{"activation_function", "layer_norm_epsilon", "scale_attn_weights", "n_ctx"} {
			delete(f.config, key)
		}
	}},
	{"nothing pruned, nothing quantized", func(_ testing.TB, f *fixture) {
		f.config["pruned_heads"], f.config["quantization_config"] = map[string]any{}, nil
	}},
}

func TestOpen(t *testing.T) {
	for _, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			f := plain(t, small)
			v.spoil(t, f)
			folder, err := hf.Open(f.make(t))
			if err != nil {
				t.Fatal(err)
			}
			defer folder.Close()
			want := small
			if f.config["n_inner"] != nil {
				want.Inner = 24
			}
			if folder.Config() != want {
				t.Errorf("configuration %+v", folder.Config())
			}
			if e, a, r := folder.Dropout(); e != 0.1 || a != 0.2 || r != 0.3 {
				t.Errorf("dropout %v %v %v", e, a, r)
			}
			checkValues(t, folder, small)
		})
	}
}

// checkValues reads all parameters in pieces, in several goroutines.
func checkValues(t *testing.T, f *hf.Folder, c gpt.Config) {
	t.Helper()
	var wg sync.WaitGroup
	for _, p := range params(t, c) {
		wg.Go(func() {
			for lo := 0; lo < p.Len(); lo += 5 {
				got := make([]float32, min(5, p.Len()-lo))
				if err := f.Read(p.Name, lo, got); err != nil {
					t.Error(err)
				}
				for i, v := range got {
					if math.Float32bits(v) != math.Float32bits(value(p.Name, lo+i)) {
						t.Errorf("%s[%d] is %v, want %v", p.Name, lo+i, v, value(p.Name, lo+i))
					}
				}
			}
		})
	}
	wg.Wait()
}

func TestInner(t *testing.T) {
	c := small
	c.Inner = 7
	f, err := hf.Open(plain(t, c).make(t))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if f.Config() != c {
		t.Errorf("configuration %+v", f.Config())
	}
	checkValues(t, f, c)
}

func TestEndOfText(t *testing.T) {
	for _, c := range []struct {
		set any
		id  int
		ok  bool
	}{{10, 10, true}, {0, 0, true}, {11, 0, false}, {-1, 0, false}, {50256, 0, false}, {nil, 0, false}, {[]int{3, 4}, 0, false}, {"3", 0, false}, {2.5, 0, false}} {
		f := plain(t, small)
		f.config["eos_token_id"] = c.set
		folder, err := hf.Open(f.make(t))
		if err != nil {
			t.Fatal(err)
		}
		defer folder.Close()
		if id, ok := folder.EndOfText(); ok != c.ok || ok && id != c.id {
			t.Errorf("eos_token_id %v: token %d, %v", c.set, id, ok)
		}
	}
	folder, err := hf.Open(plain(t, small).make(t))
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	if id, ok := folder.EndOfText(); ok {
		t.Errorf("without eos_token_id: token %d", id)
	}
}

// Numbers that are none are weights like others: a run that diverged can be looked at.
func TestNotFinite(t *testing.T) {
	f := plain(t, small)
	f.tensors["transformer.ln_f.bias"] = floats32(t, safetensors.F32, []int64{6}, func(i int) float32 {
		return []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), 0, float32(math.Copysign(0, -1)), 1}[i]
	})
	folder, err := hf.Open(f.make(t))
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	v := make([]float32, 6)
	if err := folder.Read("ln_f.bias", 0, v); err != nil || v[0] == v[0] || !math.IsInf(float64(v[1]), 1) || !math.IsInf(float64(v[2]), -1) || !math.Signbit(float64(v[4])) {
		t.Error(v, err)
	}
}

func TestOpenRefuses(t *testing.T) {
	set := func(key string, v any) func(*testing.T, *fixture) {
		return func(_ *testing.T, f *fixture) { f.config[key] = v }
	}
	for _, c := range []struct {
		name  string
		spoil func(t *testing.T, f *fixture)
		err   error
		says  []string
	}{
		{"another model", set("model_type", "llama"), hf.ErrUnsupported, []string{`model_type is "llama"`}},
		{"no model at all", func(_ *testing.T, f *fixture) { delete(f.config, "model_type"); delete(f.config, "architectures") }, hf.ErrUnsupported, []string{"no model_type"}},
		{"exact GELU", set("activation_function", "gelu"), hf.ErrUnsupported, []string{`activation_function is "gelu"`, "gelu_new"}},
		{"ReLU", set("activation_function", "relu"), hf.ErrUnsupported, []string{"relu"}},
		{"unscaled attention", set("scale_attn_weights", false), hf.ErrUnsupported, []string{"scale_attn_weights"}},
		{"attention scaled by layer", set("scale_attn_by_inverse_layer_idx", true), hf.ErrUnsupported, []string{"scale_attn_by_inverse_layer_idx"}},
		{"reordered attention", set("reorder_and_upcast_attn", true), hf.ErrUnsupported, []string{"reorder_and_upcast_attn"}},
		{"cross-attention", set("add_cross_attention", true), hf.ErrUnsupported, []string{"add_cross_attention"}},
		{"pruned heads", set("pruned_heads", map[string]any{"0": []int{1}}), hf.ErrUnsupported, []string{"pruned_heads"}},
		{"quantized", set("quantization_config", map[string]any{"bits": 4}), hf.ErrUnsupported, []string{"quantization_config"}},
		{"two reasons", func(_ *testing.T, f *fixture) {
			f.config["activation_function"] = "gelu"
			f.config["add_cross_attention"] = true
		}, hf.ErrUnsupported, []string{"gelu", "add_cross_attention"}},
		{"dropout over 1", set("attn_pdrop", 1.5), hf.ErrFolder, []string{"attn_pdrop is 1.5"}},
		{"no eps", set("layer_norm_epsilon", 0), hf.ErrFolder, []string{"layer_norm_epsilon is 0"}},
		{"large eps", set("layer_norm_epsilon", 2), gpt.ErrConfig, []string{"eps is 2"}},
		{"negative eps", set("layer_norm_epsilon", -1), hf.ErrFolder, []string{"layer_norm_epsilon is -1"}},
		{"no inner width", set("n_inner", 0), hf.ErrFolder, []string{"n_inner is 0"}},
		{"heads that do not divide", set("n_head", 4), gpt.ErrConfig, []string{"width 6 is not a multiple of 4 heads"}},
		{"no layers", set("n_layer", 0), gpt.ErrConfig, []string{"layers is 0"}},
		{"huge vocabulary", set("vocab_size", 1<<40), gpt.ErrConfig, []string{"vocabulary is 1099511627776"}},
		{"width in quotes", set("n_embd", "6"), hf.ErrFolder, []string{"config.json", "n_embd"}},
		{"width that is no integer", set("n_embd", 6.5), hf.ErrFolder, []string{"n_embd"}},
		{"layers beyond the files", set("n_layer", 1<<30), hf.ErrTensors, []string{"n_layer is 1073741824, but there are only 28 tensors"}},
		{"a layer more", set("n_layer", 3), hf.ErrTensors, []string{"missing: h.2.ln_1.weight", "and 6 more"}},
		{"a layer less", set("n_layer", 1), hf.ErrTensors, []string{"too many: transformer.h.1.attn.c_attn.bias", "and 6 more"}},
		{"another vocabulary", set("vocab_size", 12), hf.ErrTensors, []string{"wte.weight has shape [11 6], config.json asks for [12 6]"}},
		{"another n_positions", set("n_positions", 4), hf.ErrTensors, []string{"wpe.weight has shape [5 6], config.json asks for [4 6]"}},
		{"another inner width", set("n_inner", 23), hf.ErrTensors, []string{"h.0.mlp.c_fc.weight has shape [6 24], config.json asks for [6 23]", "h.1.mlp.c_proj.weight"}},
		{"output-major matrices", func(_ *testing.T, f *fixture) {
			x := f.tensors["transformer.h.0.attn.c_attn.weight"]
			x.shape = []int64{18, 6}
			f.tensors["transformer.h.0.attn.c_attn.weight"] = x
		}, hf.ErrTensors, []string{"h.0.attn.c_attn.weight has shape [18 6], config.json asks for [6 18]"}},
		{"a bias missing", func(_ *testing.T, f *fixture) { delete(f.tensors, "transformer.h.1.mlp.c_fc.bias") }, hf.ErrTensors, []string{"missing: h.1.mlp.c_fc.bias"}},
		{"one too many and one missing", func(_ *testing.T, f *fixture) {
			f.rename(func(s string) string { return strings.Replace(s, "ln_f.bias", "ln_f.beta", 1) })
		}, hf.ErrTensors, []string{"missing: ln_f.bias", "too many: transformer.ln_f.beta"}},
		{"a classifier", func(t *testing.T, f *fixture) {
			f.tensors["score.weight"] = floats32(t, safetensors.F32, []int64{2, 6}, func(int) float32 { return 0 })
		}, hf.ErrTensors, []string{"too many: score.weight"}},
		{"no mask of a block", func(t *testing.T, f *fixture) {
			f.tensors["h.x.attn.bias"] = floats32(t, safetensors.F32, []int64{1}, func(int) float32 { return 0 })
		}, hf.ErrTensors, []string{"too many: h.x.attn.bias"}},
		{"both names of one parameter", func(_ *testing.T, f *fixture) { f.tensors["wpe.weight"] = f.tensors["transformer.wpe.weight"] }, hf.ErrFolder, []string{"transformer.wpe.weight", "are the same parameter"}},
		{"integers", func(_ *testing.T, f *fixture) {
			f.tensors["transformer.ln_f.bias"] = stored{safetensors.I8, []int64{6}, make([]byte, 6)}
		}, hf.ErrUnsupported, []string{"transformer.ln_f.bias", "I8"}},
		{"a head that differs in its last bit", func(t *testing.T, f *fixture) {
			f.tensors["lm_head.weight"] = floats32(t, safetensors.F32, []int64{11, 6}, func(i int) float32 {
				v := value("wte.weight", i)
				if i == 65 {
					v = math.Nextafter32(v, 100)
				}
				return v
			})
		}, hf.ErrUnsupported, []string{"lm_head.weight differs from transformer.wte.weight, first at element 65"}},
		{"a head of another shape", func(t *testing.T, f *fixture) {
			f.tensors["lm_head.weight"] = floats32(t, safetensors.F32, []int64{6, 11}, func(i int) float32 { return 0 })
		}, hf.ErrUnsupported, []string{"lm_head.weight is F32 of shape [6 11]", "wte.weight is F32 of shape [11 6]"}},
		{"an untied head that is not there", set("tie_word_embeddings", false), hf.ErrTensors, []string{"tie_word_embeddings is false, but there is no lm_head.weight"}},
		{"no configuration", func(_ *testing.T, f *fixture) { f.config = nil }, hf.ErrFolder, []string{"has no config.json"}},
		{"index that names an absent file", func(_ *testing.T, f *fixture) {
			f.split(2)
			f.index = `{"weight_map":{"transformer.wte.weight":"part-z.safetensors"}}`
		}, fs.ErrNotExist, []string{"index.json names part-z.safetensors"}},
		{"index that names a tensor of another file", func(_ *testing.T, f *fixture) {
			f.split(2)
			f.index = `{"weight_map":{"transformer.wte.weight":"part-a.safetensors"}}`
		}, hf.ErrFolder, []string{"part-a.safetensors has transformer.wte.weight: it has not", "which model.safetensors.index.json does not say"}},
		{"index that leaves the folder", func(_ *testing.T, f *fixture) {
			f.split(2)
			f.index = `{"weight_map":{"transformer.wte.weight":"../x.safetensors"}}`
		}, hf.ErrFolder, []string{`"../x.safetensors"`, "no name of a file in this folder"}},
		{"index that names a file by its whole path", func(_ *testing.T, f *fixture) {
			f.split(2)
			f.index = `{"weight_map":{"transformer.wte.weight":"/etc/passwd"}}`
		}, hf.ErrFolder, []string{"/etc/passwd"}},
		{"index that names another folder's file", func(_ *testing.T, f *fixture) { f.split(2); f.index = `{"weight_map":{"x":"sub/x.safetensors"}}` }, hf.ErrFolder, []string{"sub/x"}},
		{"index that names nothing", func(_ *testing.T, f *fixture) { f.split(2); f.index = `{"weight_map":{"x":""}}` }, hf.ErrFolder, []string{`tensor "x" lies in ""`}},
		{"index that names the folder", func(_ *testing.T, f *fixture) { f.split(2); f.index = `{"weight_map":{"x":"."}}` }, hf.ErrFolder, []string{`"."`}},
		{"empty index", func(_ *testing.T, f *fixture) { f.split(2); f.index = `{}` }, hf.ErrFolder, []string{"weight_map is missing or empty"}},
		{"index that is no JSON", func(_ *testing.T, f *fixture) { f.split(2); f.index = `{"weight_map"` }, hf.ErrFolder, []string{"index.json"}},
		{"parameter in two files", func(_ *testing.T, f *fixture) {
			f.tensors["wte.weight"] = f.tensors["transformer.wte.weight"]
			f.split(9)
		}, hf.ErrFolder, []string{"are the same parameter"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := plain(t, small)
			c.spoil(t, f)
			folder, err := hf.Open(f.make(t))
			if folder != nil || !errors.Is(err, c.err) || !strings.HasPrefix(err.Error(), "hf: ") || strings.Contains(err.Error(), "\n") {
				t.Fatalf("error %v, want %v", err, c.err)
			}
			if errors.Is(err, gpt.ErrConfig) && !errors.Is(err, hf.ErrFolder) {
				t.Errorf("%v is not the folder's fault", err)
			}
			for _, s := range c.says {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("%q does not say %q", err, s)
				}
			}
		})
	}
}

func TestOpenRefusesOtherFolders(t *testing.T) {
	remove := func(t *testing.T, dir string) {
		if err := os.Remove(filepath.Join(dir, "model.safetensors")); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name  string
		spoil func(t *testing.T, dir string)
		err   error
		says  string
	}{
		{"no weights", remove, hf.ErrFolder, "neither model.safetensors nor"},
		{"a pickle", func(t *testing.T, dir string) { remove(t, dir); write(t, dir, "pytorch_model.bin", nil) }, hf.ErrUnsupported, "pickle"},
		{"weights that end early", func(t *testing.T, dir string) {
			if err := os.Truncate(filepath.Join(dir, "model.safetensors"), 5000); err != nil {
				t.Fatal(err)
			}
		}, safetensors.ErrCorrupt, "ends early"},
		{"weights that are something else", func(t *testing.T, dir string) {
			write(t, dir, "model.safetensors", []byte("version https://git-lfs.github.com/spec/v1"))
		}, safetensors.ErrCorrupt, "no safetensors file"},
		{"configuration that ends early", func(t *testing.T, dir string) { write(t, dir, "config.json", []byte(`{"n_layer": 2`)) }, hf.ErrFolder, "config.json"},
		{"empty configuration", func(t *testing.T, dir string) { write(t, dir, "config.json", nil) }, hf.ErrFolder, "config.json"},
		{"configuration that is a folder", func(t *testing.T, dir string) {
			if err := errors.Join(os.Remove(filepath.Join(dir, "config.json")), os.Mkdir(filepath.Join(dir, "config.json"), 0o777)); err != nil {
				t.Fatal(err)
			}
		}, hf.ErrFolder, "not a regular file"},
		{"no folder", func(t *testing.T, dir string) {
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
		}, fs.ErrNotExist, "has no config.json"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := plain(t, small).make(t)
			c.spoil(t, dir)
			if _, err := hf.Open(dir); !errors.Is(err, c.err) || !strings.HasPrefix(err.Error(), "hf: ") || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v, want %v that says %q", err, c.err, c.says)
			}
		})
	}
}

// Wherever a folder's file of weights ends, it is refused.
func TestTruncatedAnywhere(t *testing.T) {
	dir := plain(t, small).make(t)
	path := filepath.Join(dir, "model.safetensors")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for n := 0; n < len(raw); n += 97 {
		write(t, dir, "model.safetensors", raw[:n])
		if _, err := hf.Open(dir); !errors.Is(err, safetensors.ErrCorrupt) {
			t.Fatalf("%d bytes of %d: %v", n, len(raw), err)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	f, err := hf.Open(plain(t, small).make(t))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, c := range []struct {
		name  string
		lo, n int
	}{{"lm_head.weight", 0, 1}, {"transformer.wte.weight", 0, 1}, {"wte.weight", 60, 7}, {"wte.weight", -1, 1}, {"wte.weight", 67, 0}, {"ln_f.bias", math.MaxInt, 1}} {
		if err := f.Read(c.name, c.lo, make([]float32, c.n)); !errors.Is(err, hf.ErrParameter) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// F64 is read where fp32 holds it.
func TestFloat64(t *testing.T) {
	f := plain(t, small)
	f.tensors["transformer.ln_f.bias"] = stored{safetensors.F64, []int64{6}, append(make([]byte, 47), 0x40)} // the last one is 2
	folder, err := hf.Open(f.make(t))
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	v := make([]float32, 6)
	if err := folder.Read("ln_f.bias", 0, v); err != nil || v[4] != 0 || v[5] != 2 {
		t.Error(v, err)
	}
	f.tensors["transformer.ln_f.bias"].data[0] = 1 // a denormal float64
	bad, err := hf.Open(f.make(t))
	if err != nil {
		t.Fatal(err)
	}
	defer bad.Close()
	if err := bad.Read("ln_f.bias", 0, v); !errors.Is(err, safetensors.ErrConvert) {
		t.Error(err)
	}
}

// No configuration and no index make Open panic, or give a folder that cannot be read. (The files of weights are package safetensors'.)
func FuzzOpen(f *testing.F) {
	base := plain(f, small)
	base.split(2)
	dir := base.make(f)
	config, err := os.ReadFile(filepath.Join(dir, "config.json"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(config), base.index)
	f.Add(`{"model_type":"gpt2","n_layer":1073741824,"n_head":1073741824,"n_embd":1073741824}`, base.index)
	f.Add(`{"model_type":"gpt2","n_layer":0}`, `{"weight_map":{"wte.weight":"part-a.safetensors"}}`)
	f.Fuzz(func(t *testing.T, config, index string) {
		write(t, dir, "config.json", []byte(config))
		write(t, dir, "model.safetensors.index.json", []byte(index))
		folder, err := hf.Open(dir)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "hf: ") {
				t.Errorf("%q", err)
			}
			return
		}
		defer folder.Close()
		checkValues(t, folder, folder.Config())
	})
}
