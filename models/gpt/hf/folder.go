package hf

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"zeroshard/checkpoint/safetensors"
	"zeroshard/models/gpt"
)

// Folder is an open folder. Reads may come from several goroutines at a time.
type Folder struct {
	dir      string
	config   gpt.Config
	settings *settings
	files    []*safetensors.File
	params   map[string]place // by the names of package gpt
}

// place is where a parameter lies.
type place struct {
	file   *safetensors.File
	tensor safetensors.Tensor
}

// The names that folders have and package gpt has not.
const (
	prefix = "transformer."
	head   = "lm_head.weight"
	table  = "wte.weight" // what the head may equal
)

// Open opens a folder and checks all of it but the weights' values. Errors: those of the operating system, ErrFolder, ErrUnsupported,
// ErrTensors, gpt.ErrConfig, and safetensors.ErrCorrupt.
func Open(dir string) (*Folder, error) {
	text, err := readText(filepath.Join(dir, configFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s has no %s: %w", ErrFolder, dir, configFile, err)
	}
	if err != nil {
		return nil, err
	}
	f := &Folder{dir: dir}
	if f.settings, f.config, err = parseConfig(text); err != nil {
		return nil, fmt.Errorf("hf: %s: %w", dir, err)
	}
	if f.files, err = openWeights(dir); err != nil {
		return nil, err
	}
	if err := f.match(); err != nil {
		closeAll(f.files)
		return nil, err
	}
	return f, nil
}

// Config is the model's configuration, without dropout: what to drop is a setting of the run.
func (f *Folder) Config() gpt.Config { return f.config }

// Dropout is what config.json says of dropout: after the embedding, of attention weights, and of both residual branches.
func (f *Folder) Dropout() (embd, attn, resid float32) {
	return float32(f.settings.EmbdDrop), float32(f.settings.AttnDrop), float32(f.settings.ResidDrop)
}

// EndOfText is the token that ends a text (eos_token_id of config.json), false where the vocabulary has none.
func (f *Folder) EndOfText() (id int, ok bool) { return f.settings.endOfText() }

// Read fills dst with elements lo, lo+1, … of a parameter by its name in package gpt, row-major, widened to fp32. Errors:
// ErrParameter, safetensors.ErrConvert (an F64 that no fp32 equals), and those of the operating system.
func (f *Folder) Read(name string, lo int, dst []float32) error {
	p, ok := f.params[name]
	if !ok {
		return fmt.Errorf("%w: %q in %s", ErrParameter, name, f.dir)
	}
	if n := p.tensor.Len(); lo < 0 || int64(lo) > n || int64(len(dst)) > n-int64(lo) {
		return fmt.Errorf("%w: elements [%d, %d) of %q, which has %d", ErrParameter, lo, lo+len(dst), name, n)
	}
	if err := p.file.Float32s(p.tensor, int64(lo), dst); err != nil {
		return fmt.Errorf("hf: %w", err)
	}
	return nil
}

// Close closes the files.
func (f *Folder) Close() error { return closeAll(f.files) }

// match finds each parameter's tensor.
func (f *Folder) match() error {
	found := map[string]place{}
	count := 0
	for _, file := range f.files {
		for _, t := range file.Tensors {
			name := strings.TrimPrefix(t.Name, prefix)
			if mask(name) {
				continue
			}
			if was, ok := found[name]; ok {
				return fmt.Errorf("%w: %s of %s and %s of %s are the same parameter", ErrFolder,
					was.tensor.Name, was.file.Name(), t.Name, file.Name())
			}
			found[name] = place{file, t}
			count++
		}
	}
	// Before a list of all parameters is made from numbers that somebody else wrote.
	if f.config.Layers > count {
		return fmt.Errorf("%w: %s: n_layer is %d, but there are only %d tensors", ErrTensors, f.dir, f.config.Layers, count)
	}
	m, err := gpt.New(f.config)
	if err != nil {
		return fmt.Errorf("hf: %w", err)
	}
	last, tail := found[head]
	delete(found, head)
	if err := f.fit(m, found); err != nil {
		return err
	}
	f.params = found
	if !tail && !f.settings.tied() {
		return fmt.Errorf("%w: %s: tie_word_embeddings is false, but there is no %s", ErrTensors, f.dir, head)
	}
	if tail {
		return f.compareHead(last)
	}
	return nil
}

// mask says whether a tensor is a buffer that old versions saved with a block: h.i.attn.bias or h.i.attn.masked_bias.
func mask(name string) bool {
	rest, ok := strings.CutPrefix(name, "h.")
	i, rest, found := strings.Cut(rest, ".")
	return ok && found && i != "" && strings.Trim(i, "0123456789") == "" && (rest == "attn.bias" || rest == "attn.masked_bias")
}

// fit compares the tensors found with the model's parameters and lists all that differ.
func (f *Folder) fit(m *gpt.Model, found map[string]place) error {
	var missing, extra, other []string
	wanted := map[string]bool{}
	for _, flat := range m.Flats() {
		for _, p := range flat.Params {
			wanted[p.Name] = true
			at, ok := found[p.Name]
			if !ok {
				missing = append(missing, p.Name)
				continue
			}
			t := at.tensor
			if want := shape64(p.Shape); !slices.Equal(t.Shape, want) {
				other = append(other, fmt.Sprintf("%s has shape %v, %s asks for %v", p.Name, t.Shape, configFile, want))
			}
			if !floats(t.DType) {
				return fmt.Errorf("%w: %s of %s has elements of type %s, only F32, F16, BF16 and F64 are read", ErrUnsupported, t.Name, at.file.Name(), t.DType)
			}
		}
	}
	for name, at := range found {
		if !wanted[name] {
			extra = append(extra, at.tensor.Name)
		}
	}
	slices.Sort(extra)
	var errs reasons
	for _, l := range []struct {
		what  string
		names []string
	}{{"missing: ", missing}, {"too many: ", extra}, {"", other}} {
		if l.names != nil {
			errs = append(errs, fmt.Errorf("%w: %s: %s%s", ErrTensors, f.dir, l.what, some(l.names)))
		}
	}
	return joined(errs)
}

func shape64(shape []int) []int64 {
	out := make([]int64, len(shape))
	for i, d := range shape {
		out[i] = int64(d)
	}
	return out
}

func floats(d safetensors.DType) bool {
	return d == safetensors.F32 || d == safetensors.F16 || d == safetensors.BF16 || d == safetensors.F64
}

// compareHead lets a head pass that is the embedding's table again.
func (f *Folder) compareHead(last place) error {
	wte := f.params[table]
	name := last.tensor.Name
	if !slices.Equal(last.tensor.Shape, wte.tensor.Shape) || !floats(last.tensor.DType) {
		return fmt.Errorf("%w: %s: %s is %s of shape %v, %s is %s of shape %v: a head of its own is not computed", ErrUnsupported,
			f.dir, name, last.tensor.DType, last.tensor.Shape, wte.tensor.Name, wte.tensor.DType, wte.tensor.Shape)
	}
	a, b := make([]float32, chunk/2), make([]float32, chunk/2)
	for lo, n := int64(0), wte.tensor.Len(); lo < n; lo += int64(len(a)) {
		k := min(n-lo, int64(len(a)))
		if err := errors.Join(wte.file.Float32s(wte.tensor, lo, a[:k]), last.file.Float32s(last.tensor, lo, b[:k])); err != nil {
			return fmt.Errorf("hf: %w", err)
		}
		for i := range a[:k] {
			if math.Float32bits(a[i]) != math.Float32bits(b[i]) {
				return fmt.Errorf("%w: %s: %s differs from %s, first at element %d (%v and %v): the logits come from a head of their own, "+
					"which is not computed; the same table must serve both", ErrUnsupported, f.dir, name, wte.tensor.Name, lo+int64(i), b[i], a[i])
			}
		}
	}
	return nil
}
