package hf

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"zeroshard/checkpoint/safetensors"
	"zeroshard/internal/claim"
	"zeroshard/internal/disk"
	"zeroshard/models/gpt"
	"zeroshard/shard"
)

// Export says what to write.
type Export struct {
	Config gpt.Config
	// DType is F32 (also where empty), F16 or BF16, rounded to nearest, ties to even.
	DType safetensors.DType
	// ShardBytes is the most bytes of weights in a file, unless one parameter alone is larger; 0 = 5·10⁹.
	ShardBytes int64
	// EndOfText is the id that begins and ends a text (bos_token_id, eos_token_id; 50256 in GPT-2's vocabulary), nil for none.
	EndOfText *int
	// Files adds files, a tokenizer's, to the folder before it appears under its name; nil for none.
	Files func(dir string) error
}

// Reader fills dst with elements lo, lo+1, … of a parameter by its name in package gpt.
type Reader = func(name string, lo int, dst []float32) error

const defaultShard = 5_000_000_000

// chunk is how many elements are asked for at a time: 2 MiB as they come, and at most as much as they are written.
const chunk = 1 << 19

// Write writes a folder. It asks read for each parameter once, from its first element to its last, at most 2¹⁹ elements at a time, from
// one goroutine. The folder may exist if it is empty. Errors: ErrExport, gpt.ErrConfig, safetensors.ErrConvert (a value that DType
// cannot hold), those of read and of Files, and those of the operating system; dir is then as it was. Only a run that is killed leaves something, a folder
// .NAME.tmp-N beside dir, which the next that writes NAME removes.
func Write(dir string, e Export, read Reader) (err error) {
	if err := e.judge(); err != nil {
		return err
	}
	dir = filepath.Clean(dir)
	if target, err := filepath.EvalSymlinks(dir); err == nil {
		dir = target
	}
	if err := vacant(dir); err != nil {
		return err
	}
	tmp, err := claim.Beside(dir)
	if err != nil {
		return fmt.Errorf("hf: %w", err)
	}
	defer tmp.Close()
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(tmp.Path))
		}
	}()
	if err := e.fill(tmp.Path, read); err != nil {
		return err
	}
	if err := syncTree(tmp.Path); err != nil {
		return fmt.Errorf("hf: %w", err)
	}
	if err := settle(tmp.Path, dir); err != nil {
		return fmt.Errorf("hf: %w", err)
	}
	if err := disk.SyncDir(filepath.Dir(dir)); err != nil {
		return fmt.Errorf("hf: %w", err)
	}
	return nil
}

// judge checks e and gives it its defaults.
func (e *Export) judge() error {
	if err := e.Config.Validate(); err != nil {
		return fmt.Errorf("hf: %w", err)
	}
	if e.DType == "" {
		e.DType = safetensors.F32
	}
	if e.ShardBytes == 0 {
		e.ShardBytes = defaultShard
	}
	switch {
	case torchTypes(e.DType) == "":
		return fmt.Errorf("%w: weights of type %q: F32, F16 and BF16 are written", ErrExport, e.DType)
	case e.ShardBytes < 0:
		return fmt.Errorf("%w: files of at most %d bytes", ErrExport, e.ShardBytes)
	case e.EndOfText != nil && (*e.EndOfText < 0 || *e.EndOfText >= e.Config.Vocab):
		return fmt.Errorf("%w: token %d ends a text, the vocabulary has %d", ErrExport, *e.EndOfText, e.Config.Vocab)
	}
	return nil
}

// vacant says whether a folder can be written at dir.
func vacant(dir string) error {
	f, err := os.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("hf: %w", err)
	}
	defer f.Close()
	names, err := f.Readdirnames(1)
	if len(names) > 0 {
		return fmt.Errorf("%w: %s exists and is not empty: remove it, or name another folder", ErrExport, dir)
	}
	if !errors.Is(err, io.EOF) {
		return fmt.Errorf("%w: %s is no folder: %w", ErrExport, dir, err)
	}
	return nil
}

// fill writes all files into dir.
func (e *Export) fill(dir string, read Reader) error {
	params, err := e.params()
	if err != nil {
		return err
	}
	if err := e.writeConfig(dir); err != nil {
		return err
	}
	files, err := e.split(params)
	if err != nil {
		return err
	}
	c := &copier{dtype: e.DType, read: read, in: make([]float32, chunk), out: make([]byte, 0, chunk*e.DType.Size())}
	for _, f := range files {
		if err := c.write(filepath.Join(dir, f.name), f.params); err != nil {
			return err
		}
	}
	if len(files) > 1 {
		if err := writeIndex(dir, files, e.DType); err != nil {
			return err
		}
	}
	if e.Files == nil {
		return nil
	}
	if err := e.Files(dir); err != nil {
		return fmt.Errorf("hf: adding files to the folder: %w", err)
	}
	return nil
}

// param is a parameter to write.
type param struct {
	shard.Param
	zero bool // a bias that the model has not
}

func (p param) tensor(d safetensors.DType) safetensors.Tensor {
	return safetensors.Tensor{Name: prefix + p.Name, DType: d, Shape: shape64(p.Shape)}
}

// params are those of a model with biases, in its order.
func (e *Export) params() ([]param, error) {
	own, err := gpt.New(e.Config)
	if err != nil {
		return nil, fmt.Errorf("hf: %w", err)
	}
	has := map[string]bool{}
	for _, flat := range own.Flats() {
		for _, p := range flat.Params {
			has[p.Name] = true
		}
	}
	full := e.Config
	full.Bias = true
	m, err := gpt.New(full)
	if err != nil {
		return nil, fmt.Errorf("hf: %w", err)
	}
	var out []param
	for _, flat := range m.Flats() {
		for _, p := range flat.Params {
			out = append(out, param{p, !has[p.Name]})
		}
	}
	return out, nil
}

// weights is a file and what is in it.
type weights struct {
	name   string
	params []param
}

// split gives each parameter a file: in order, a new one where the parameter would not fit.
func (e *Export) split(params []param) ([]weights, error) {
	files, size := []weights{{}}, int64(0)
	for _, p := range params {
		n := int64(p.Len()) * int64(e.DType.Size())
		if last := len(files) - 1; size > 0 && n > e.ShardBytes-size {
			files, size = append(files, weights{params: []param{p}}), 0
		} else {
			files[last].params = append(files[last].params, p)
		}
		size += n
	}
	if len(files) == 1 {
		files[0].name = weightsFile
		return files, nil
	}
	if len(files) > 99999 {
		return nil, fmt.Errorf("%w: files of at most %d bytes would be %d, transformers counts to 99999", ErrExport, e.ShardBytes, len(files))
	}
	for i := range files {
		files[i].name = fmt.Sprintf("model-%05d-of-%05d.safetensors", i+1, len(files))
	}
	return files, nil
}

// copier streams parameters through two buffers.
type copier struct {
	dtype safetensors.DType
	read  Reader
	in    []float32
	out   []byte
}

func (c *copier) write(path string, params []param) (err error) {
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("hf: %w", err)
	}
	defer func() {
		if e := f.Close(); e != nil && err == nil {
			err = fmt.Errorf("hf: %w", e)
		}
	}()
	var tensors []safetensors.Tensor
	for _, p := range params {
		tensors = append(tensors, p.tensor(c.dtype))
	}
	// transformers reads only files that say for whom they were written.
	w, err := safetensors.NewWriter(f, tensors, map[string]string{"format": "pt"})
	if err != nil {
		return fmt.Errorf("hf: %w", err)
	}
	for _, p := range params {
		if err := c.copy(w, p); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return fmt.Errorf("hf: %w", err)
	}
	return nil
}

func (c *copier) copy(w io.Writer, p param) error {
	for lo := 0; lo < p.Len(); lo += len(c.in) {
		v := c.in[:min(len(c.in), p.Len()-lo)]
		if p.zero {
			clear(v)
		} else if err := c.read(p.Name, lo, v); err != nil {
			return fmt.Errorf("hf: reading %s from element %d on: %w", p.Name, lo, err)
		}
		raw, err := safetensors.AppendFloat32s(c.out[:0], c.dtype, v)
		if err != nil {
			return fmt.Errorf("hf: %s from element %d on: %w", p.Name, lo, err)
		}
		if _, err := w.Write(raw); err != nil {
			return fmt.Errorf("hf: %s: %w", p.Name, err)
		}
	}
	return nil
}

// writeIndex writes model.safetensors.index.json.
func writeIndex(dir string, files []weights, d safetensors.DType) error {
	var x struct {
		Metadata struct {
			Size int64 `json:"total_size"` // bytes
		} `json:"metadata"`
		WeightMap map[string]string `json:"weight_map"`
	}
	x.WeightMap = map[string]string{}
	for _, f := range files {
		for _, p := range f.params {
			x.WeightMap[prefix+p.Name] = f.name
			x.Metadata.Size += int64(p.Len()) * int64(d.Size())
		}
	}
	return writeJSON(filepath.Join(dir, indexFile), x)
}

// torchTypes is what torch calls an element type, "" for those that are not written.
func torchTypes(d safetensors.DType) string {
	switch d {
	case safetensors.F32:
		return "float32"
	case safetensors.F16:
		return "float16"
	case safetensors.BF16:
		return "bfloat16"
	}
	return ""
}

// number prints as Python prints a float: 1e-05, 0.1, 0.0.
func number(v float32) json.Number {
	s := strconv.FormatFloat(float64(v), 'g', -1, 32)
	if _, err := strconv.Atoi(s); err == nil {
		s += ".0"
	}
	return json.Number(s)
}

// writeConfig writes config.json and generation_config.json.
func (e *Export) writeConfig(dir string) error {
	c := e.Config
	if c.Eps == 0 {
		c.Eps = 1e-5
	}
	var inner *int
	if c.Inner != 0 {
		inner = &c.Inner
	}
	drop := number(c.Dropout)
	err := writeJSON(filepath.Join(dir, configFile), struct {
		Activation    string      `json:"activation_function"`
		Architectures []string    `json:"architectures"`
		AttnDrop      json.Number `json:"attn_pdrop"`
		BOS           *int        `json:"bos_token_id"`
		EmbdDrop      json.Number `json:"embd_pdrop"`
		EOS           *int        `json:"eos_token_id"`
		InitRange     float64     `json:"initializer_range"`
		Eps           json.Number `json:"layer_norm_epsilon"`
		ModelType     string      `json:"model_type"`
		Context       int         `json:"n_ctx"`
		Width         int         `json:"n_embd"`
		Heads         int         `json:"n_head"`
		Inner         *int        `json:"n_inner"`
		Layers        int         `json:"n_layer"`
		Positions     int         `json:"n_positions"`
		ResidDrop     json.Number `json:"resid_pdrop"`
		Scale         bool        `json:"scale_attn_weights"`
		Tied          bool        `json:"tie_word_embeddings"`
		TorchType     string      `json:"torch_dtype"`
		UseCache      bool        `json:"use_cache"`
		Vocab         int         `json:"vocab_size"`
	}{"gelu_new", []string{"GPT2LMHeadModel"}, drop, e.EndOfText, drop, e.EndOfText, 0.02, number(c.Eps), "gpt2",
		c.Positions, c.Width, c.Heads, inner, c.Layers, c.Positions, drop, true, true, torchTypes(e.DType), true, c.Vocab})
	if err != nil {
		return err
	}
	return writeJSON(filepath.Join(dir, "generation_config.json"), struct {
		FromModel bool `json:"_from_model_config"`
		BOS       *int `json:"bos_token_id,omitempty"`
		EOS       *int `json:"eos_token_id,omitempty"`
	}{true, e.EndOfText, e.EndOfText})
}

func writeJSON(path string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err == nil {
		err = os.WriteFile(path, append(text, '\n'), 0o666)
	}
	if err != nil {
		return fmt.Errorf("hf: %w", err)
	}
	return nil
}
