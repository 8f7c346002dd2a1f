package hf_test

import (
	"encoding/json"
	"hash/fnv"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"zeroshard/checkpoint/safetensors"
	"zeroshard/models/gpt"
	"zeroshard/shard"
)

// small is a model whose dimensions all differ.
var small = gpt.Config{Layers: 2, Heads: 3, Width: 6, Vocab: 11, Positions: 5, Bias: true, Eps: 1e-5}

// value is an element of a parameter: a function of its name and place that 16-bit floats hold exactly.
func value(name string, i int) float32 {
	h := fnv.New32a()
	h.Write([]byte(name))
	return float32(int32(h.Sum32()+uint32(i)*2654435761)>>25) / 16
}

func values(name string, lo int, dst []float32) error {
	for i := range dst {
		dst[i] = value(name, lo+i)
	}
	return nil
}

func params(t testing.TB, c gpt.Config) (list []shard.Param) {
	t.Helper()
	m, err := gpt.New(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range m.Flats() {
		list = append(list, f.Params...)
	}
	return list
}

// fixture is a folder that a test spoils in its own way.
type fixture struct {
	config  map[string]any
	tensors map[string]stored // by the name in the file
	files   map[string][]string
	index   string // "" = made from files
}

type stored struct {
	dtype safetensors.DType
	shape []int64
	data  []byte
}

func floats32(t testing.TB, d safetensors.DType, shape []int64, at func(i int) float32) stored {
	t.Helper()
	n := 1
	for _, x := range shape {
		n *= int(x)
	}
	v := make([]float32, n)
	for i := range v {
		v[i] = at(i)
	}
	data, err := safetensors.AppendFloat32s(nil, d, v)
	if err != nil {
		t.Fatal(err)
	}
	return stored{d, shape, data}
}

// plain is a folder as transformers writes it: one file, the prefix, fp32.
func plain(t testing.TB, c gpt.Config) *fixture {
	t.Helper()
	f := &fixture{tensors: map[string]stored{}, config: map[string]any{
		"architectures": []string{"GPT2LMHeadModel"}, "model_type": "gpt2", "vocab_size": c.Vocab, "n_positions": c.Positions, "n_ctx": 1024,
		"n_embd": c.Width, "n_layer": c.Layers, "n_head": c.Heads, "n_inner": nil, "activation_function": "gelu_new", "layer_norm_epsilon": 1e-5,
		"embd_pdrop": 0.1, "attn_pdrop": 0.2, "resid_pdrop": 0.3, "scale_attn_weights": true, "transformers_version": "4.57.0",
		"task_specific_params": map[string]any{"text-generation": map[string]any{"do_sample": true}},
	}}
	if c.Inner != 0 {
		f.config["n_inner"] = c.Inner
	}
	for _, p := range params(t, c) {
		f.tensors["transformer."+p.Name] = floats32(t, safetensors.F32, shape(p), func(i int) float32 { return value(p.Name, i) })
	}
	return f
}

func shape(p shard.Param) (s []int64) {
	for _, d := range p.Shape {
		s = append(s, int64(d))
	}
	return s
}

// rename changes the names of all tensors.
func (f *fixture) rename(to func(string) string) {
	was := f.tensors
	f.tensors = map[string]stored{}
	for name, x := range was {
		f.tensors[to(name)] = x
	}
}

// bare takes the prefix away.
func (f *fixture) bare() {
	f.rename(func(s string) string { return strings.TrimPrefix(s, "transformer.") })
}

// retype stores all tensors as another type.
func (f *fixture) retype(t testing.TB, d safetensors.DType) {
	for name, x := range f.tensors {
		plain := strings.TrimPrefix(name, "transformer.")
		f.tensors[name] = floats32(t, d, x.shape, func(i int) float32 { return value(plain, i) })
	}
}

// split deals the tensors to n files.
func (f *fixture) split(n int) {
	f.files = map[string][]string{}
	for i, name := range slices.Sorted(maps.Keys(f.tensors)) {
		file := "part-" + string(rune('a'+i%n)) + ".safetensors"
		f.files[file] = append(f.files[file], name)
	}
}

// make writes the folder.
func (f *fixture) make(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	if f.config != nil {
		text, err := json.Marshal(f.config)
		if err != nil {
			t.Fatal(err)
		}
		write(t, dir, "config.json", text)
	}
	files := f.files
	if files == nil {
		files = map[string][]string{"model.safetensors": slices.Sorted(maps.Keys(f.tensors))}
	}
	where := map[string]string{}
	for file, names := range files {
		for _, name := range names {
			where[name] = file
		}
		write(t, dir, file, f.weights(t, names))
	}
	if f.files != nil && f.index == "" {
		text, err := json.Marshal(map[string]any{"metadata": map[string]any{"total_size": 1}, "weight_map": where})
		if err != nil {
			t.Fatal(err)
		}
		f.index = string(text)
	}
	if f.index != "" {
		write(t, dir, "model.safetensors.index.json", []byte(f.index))
	}
	return dir
}

func (f *fixture) weights(t testing.TB, names []string) []byte {
	t.Helper()
	var list []safetensors.Tensor
	var data []byte
	for _, name := range names {
		x := f.tensors[name]
		list = append(list, safetensors.Tensor{Name: name, DType: x.dtype, Shape: x.shape})
		data = append(data, x.data...)
	}
	head, err := safetensors.Marshal(list, map[string]string{"format": "pt"})
	if err != nil {
		t.Fatal(err)
	}
	return append(head, data...)
}

func write(t testing.TB, dir, name string, text []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), text, 0o666); err != nil {
		t.Fatal(err)
	}
}
