package hf_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"zeroshard/checkpoint/safetensors"
	"zeroshard/internal/golden"
	"zeroshard/models/gpt"
	"zeroshard/models/gpt/hf"
)

func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, e := range list {
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = string(text)
	}
	return files
}

// What is written is read back, bit for bit: all types, whole and in files, with and without biases.
func TestRoundTrip(t *testing.T) {
	end := 10
	for _, e := range []hf.Export{
		{Config: small},
		{Config: small, DType: safetensors.F32, ShardBytes: 1000, EndOfText: &end},
		{Config: small, DType: safetensors.BF16},
		{Config: small, DType: safetensors.F16, ShardBytes: 1},
		{Config: gpt.Config{Layers: 3, Heads: 1, Width: 5, Vocab: 3, Positions: 2, Inner: 9, Bias: true, Eps: 1e-6, Dropout: 0.1}},
		{Config: gpt.Config{Layers: 1, Heads: 2, Width: 4, Vocab: 3, Positions: 2}, ShardBytes: 300},
	} {
		t.Run(fmt.Sprintf("%+v", e), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "out")
			asked := map[string]int{}
			err := hf.Write(dir, e, func(name string, lo int, dst []float32) error {
				if lo != asked[name] {
					t.Errorf("%s: asked for element %d after %d", name, lo, asked[name])
				}
				asked[name] += len(dst)
				return values(name, lo, dst)
			})
			if err != nil {
				t.Fatal(err)
			}
			own := params(t, e.Config)
			for _, p := range own {
				if asked[p.Name] != p.Len() {
					t.Errorf("%s: asked for %d elements of %d", p.Name, asked[p.Name], p.Len())
				}
			}
			if len(asked) != len(own) {
				t.Errorf("asked for %d parameters of %d", len(asked), len(own))
			}
			f, err := hf.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			want := e.Config
			want.Bias, want.Dropout = true, 0
			if want.Eps == 0 {
				want.Eps = 1e-5
			}
			if f.Config() != want {
				t.Errorf("configuration %+v", f.Config())
			}
			if id, ok := f.EndOfText(); ok != (e.EndOfText != nil) || ok && id != *e.EndOfText {
				t.Errorf("end of text %d, %v", id, ok)
			}
			if a, b, c := f.Dropout(); a != e.Config.Dropout || b != a || c != a {
				t.Errorf("dropout %v %v %v", a, b, c)
			}
			checkValues(t, f, e.Config)
			if !e.Config.Bias {
				checkZeroBiases(t, f, e.Config)
			}
			checkShards(t, dir, e)
		})
	}
}

func checkZeroBiases(t *testing.T, f *hf.Folder, c gpt.Config) {
	t.Helper()
	c.Bias = true
	zeros := 0
	for _, p := range params(t, c) {
		if !strings.HasSuffix(p.Name, ".bias") {
			continue
		}
		v := make([]float32, p.Len())
		if err := f.Read(p.Name, 0, v); err != nil {
			t.Fatal(err)
		}
		for _, x := range v {
			if math.Float32bits(x) != 0 {
				t.Errorf("%s holds %v", p.Name, x)
			}
			zeros++
		}
	}
	if zeros == 0 {
		t.Error("no biases were looked at")
	}
}

// checkShards proves the names and sizes of the files of weights.
func checkShards(t *testing.T, dir string, e hf.Export) {
	t.Helper()
	files := contents(t, dir)
	if e.ShardBytes == 0 {
		if _, ok := files["model.safetensors"]; !ok || len(files) != 3 {
			t.Errorf("files %v", slices.Sorted(maps.Keys(files)))
		}
		return
	}
	var index struct {
		WeightMap map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal([]byte(files["model.safetensors.index.json"]), &index); err != nil {
		t.Fatal(err)
	}
	n := len(files) - 3
	total := int64(0)
	for i := range n {
		name := fmt.Sprintf("model-%05d-of-%05d.safetensors", i+1, n)
		raw := []byte(files[name])
		h, err := safetensors.Parse(raw, int64(len(raw)))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		size := int64(len(raw)) - h.Data
		if size > e.ShardBytes && len(h.Tensors) > 1 {
			t.Errorf("%s has %d bytes in %d tensors, at most %d are asked for", name, size, len(h.Tensors), e.ShardBytes)
		}
		total += size
		for _, x := range h.Tensors {
			if index.WeightMap[x.Name] != name {
				t.Errorf("%s is in %s, the index says %q", x.Name, name, index.WeightMap[x.Name])
			}
		}
	}
	if want := fmt.Sprintf(`"total_size": %d`, total); !strings.Contains(files["model.safetensors.index.json"], want) {
		t.Errorf("the index does not say %s", want)
	}
}

// The files' bytes are fixed.
func TestGolden(t *testing.T) {
	end := 50256
	c := gpt.Config{Layers: 1, Heads: 2, Width: 4, Vocab: 50257, Positions: 3, Bias: true, Dropout: 0.1}
	dir := filepath.Join(t.TempDir(), "out")
	if err := hf.Write(dir, hf.Export{Config: c, EndOfText: &end, ShardBytes: 1e6}, values); err != nil {
		t.Fatal(err)
	}
	first := contents(t, dir)
	for _, name := range []string{"config.json", "generation_config.json"} {
		golden.Check(t, "testdata/gpt2/"+name, first[name])
	}
	c = gpt.Config{Layers: 1, Heads: 2, Width: 4, Vocab: 256, Positions: 3, Inner: 5, Eps: 1.5e-6}
	bytesDir := filepath.Join(t.TempDir(), "out")
	if err := hf.Write(bytesDir, hf.Export{Config: c, DType: safetensors.BF16}, values); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"config.json", "generation_config.json"} {
		golden.Check(t, "testdata/bytes/"+name, contents(t, bytesDir)[name])
	}
	// A second folder is the same as the first.
	again := filepath.Join(t.TempDir(), "out")
	c = gpt.Config{Layers: 1, Heads: 2, Width: 4, Vocab: 50257, Positions: 3, Bias: true, Dropout: 0.1}
	if err := hf.Write(again, hf.Export{Config: c, EndOfText: &end, ShardBytes: 1e6}, values); err != nil {
		t.Fatal(err)
	}
	second := contents(t, again)
	for name, text := range first {
		if second[name] != text {
			t.Errorf("%s differs in a second folder", name)
		}
	}
}

// 16 bits are rounded once, to the nearest.
func TestRounding(t *testing.T) {
	odd := func(name string, lo int, dst []float32) error {
		for i := range dst {
			dst[i] = 1 + float32(lo+i+1)*0x1p-12
		}
		return nil
	}
	for _, d := range []safetensors.DType{safetensors.F16, safetensors.BF16} {
		dir := filepath.Join(t.TempDir(), "out")
		if err := hf.Write(dir, hf.Export{Config: small, DType: d}, odd); err != nil {
			t.Fatal(err)
		}
		f, err := hf.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		got, exact := make([]float32, 66), make([]float32, 66)
		if err := errors.Join(f.Read("wte.weight", 0, got), odd("", 0, exact)); err != nil {
			t.Fatal(err)
		}
		step := map[safetensors.DType]float64{safetensors.F16: 0x1p-10, safetensors.BF16: 0x1p-7}[d]
		for i := range got {
			if want := math.RoundToEven(float64(exact[i])/step) * step; float64(got[i]) != want {
				t.Errorf("%s: %v became %v, want %v", d, exact[i], got[i], want)
			}
		}
	}
}

func TestWriteRefuses(t *testing.T) {
	end, far := -1, 11
	full := t.TempDir()
	write(t, full, "something", nil)
	file := filepath.Join(full, "something")
	for _, c := range []struct {
		name string
		dir  string
		e    hf.Export
		err  error
		says string
	}{
		{"no model", "", hf.Export{}, gpt.ErrConfig, "layers is 0"},
		{"a type that is not written", "", hf.Export{Config: small, DType: safetensors.F64}, hf.ErrExport, `"F64"`},
		{"negative size", "", hf.Export{Config: small, ShardBytes: -1}, hf.ErrExport, "at most -1 bytes"},
		{"end of text before the vocabulary", "", hf.Export{Config: small, EndOfText: &end}, hf.ErrExport, "token -1"},
		{"end of text behind the vocabulary", "", hf.Export{Config: small, EndOfText: &far}, hf.ErrExport, "the vocabulary has 11"},
		{"a folder that is not empty", full, hf.Export{Config: small}, hf.ErrExport, "is not empty"},
		{"a file", file, hf.Export{Config: small}, hf.ErrExport, "is no folder"},
		{"a folder in nothing", filepath.Join(full, "no", "out"), hf.Export{Config: small}, fs.ErrNotExist, ".out.tmp-1"},
	} {
		if c.dir == "" {
			c.dir = filepath.Join(t.TempDir(), "out")
		}
		before, _ := os.ReadDir(filepath.Dir(c.dir))
		err := hf.Write(c.dir, c.e, values)
		if !errors.Is(err, c.err) || !strings.HasPrefix(err.Error(), "hf: ") || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.name, err)
		}
		if after, _ := os.ReadDir(filepath.Dir(c.dir)); len(after) != len(before) {
			t.Errorf("%s: %d entries beside it, were %d", c.name, len(after), len(before))
		}
	}
	if files := contents(t, full); len(files) != 1 {
		t.Errorf("the folder that was not empty has %d files", len(files))
	}
}

// A fault at any call leaves nothing behind.
func TestWriteFails(t *testing.T) {
	broken := errors.New("a rank is gone")
	calls := 0
	count := func(string, int, []float32) error { calls++; return nil }
	if err := hf.Write(filepath.Join(t.TempDir(), "out"), hf.Export{Config: small, ShardBytes: 500}, count); err != nil {
		t.Fatal(err)
	}
	for at := range calls + 1 {
		parent := t.TempDir()
		dir := filepath.Join(parent, "out")
		if at%2 == 1 { // an empty folder may be there before
			if err := os.Mkdir(dir, 0o777); err != nil {
				t.Fatal(err)
			}
		}
		n := 0
		e := hf.Export{Config: small, ShardBytes: 500}
		if at == calls {
			e.Files = func(string) error { return broken }
		}
		err := hf.Write(dir, e, func(name string, lo int, dst []float32) error {
			if n++; n > at {
				return broken
			}
			return values(name, lo, dst)
		})
		if !errors.Is(err, broken) {
			t.Errorf("call %d: %v", at, err)
		}
		if list, _ := os.ReadDir(parent); len(list) != at%2 {
			t.Errorf("call %d: %v is left", at, list)
		}
	}
	// A number that the type cannot hold, with its place.
	parent := t.TempDir()
	err := hf.Write(filepath.Join(parent, "out"), hf.Export{Config: small, DType: safetensors.F16}, func(name string, lo int, dst []float32) error {
		dst[len(dst)-1] = 1e6
		return nil
	})
	if list, _ := os.ReadDir(parent); !errors.Is(err, safetensors.ErrConvert) || !strings.Contains(err.Error(), "wte.weight") || len(list) != 0 {
		t.Errorf("%v, and %d files", err, len(list))
	}
}

// Others' files are in the folder when it appears, and it replaces an empty one. What a killed run left beside is gone.
func TestFiles(t *testing.T) {
	parent := t.TempDir()
	if err := os.Mkdir(filepath.Join(parent, ".out.tmp-3"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(parent, ".out.tmp-3"), "model.safetensors", nil)
	dir := filepath.Join(parent, "out")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	err := hf.Write(dir+"/", hf.Export{Config: small, Files: func(tmp string) error {
		if files := contents(t, tmp); files["config.json"] == "" || files["model.safetensors"] == "" {
			t.Errorf("the folder has only %d files", len(files))
		}
		if list, _ := os.ReadDir(dir); len(list) != 0 {
			t.Errorf("the folder appeared early, with %d files", len(list))
		}
		return os.WriteFile(filepath.Join(tmp, "vocab.json"), []byte("{}"), 0o666)
	}}, values)
	if err != nil {
		t.Fatal(err)
	}
	if files := contents(t, dir); files["vocab.json"] != "{}" || len(files) != 4 {
		t.Errorf("the folder has %d files", len(files))
	}
	if list, _ := os.ReadDir(parent); len(list) != 1 {
		t.Errorf("%d entries in the parent", len(list))
	}
}

// What somebody makes of the name while the folder is written stays.
func TestWriteReplacesNothing(t *testing.T) {
	for name, plant := range map[string]func(dir string) error{
		"a full folder": func(dir string) error {
			return errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, "a"), nil, 0o600))
		},
		"a file": func(dir string) error { return os.WriteFile(dir, nil, 0o600) },
	} {
		parent := t.TempDir()
		dir := filepath.Join(parent, "out")
		err := hf.Write(dir, hf.Export{Config: small, Files: func(string) error { return plant(dir) }}, values)
		if err == nil || !strings.HasPrefix(err.Error(), "hf: ") || !strings.Contains(err.Error(), dir) {
			t.Errorf("%s: %v", name, err)
		}
		if list, _ := os.ReadDir(parent); len(list) != 1 {
			t.Errorf("%s: %v is left", name, list)
		}
		if _, err := os.Stat(filepath.Join(dir, "config.json")); err == nil {
			t.Errorf("%s was replaced", name)
		}
	}
}

// A folder that cannot be moved leaves the empty one that has its name.
func TestWriteLosesNoEmptyFolder(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "out")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := hf.Settle(filepath.Join(parent, "missing"), dir); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if at, err := os.Stat(dir); err != nil || at.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", at, err)
	}
	real := t.TempDir()
	link := filepath.Join(parent, "link")
	if err := os.Symlink(real, link); err != nil {
		t.Skip(err)
	}
	if err := hf.Write(link, hf.Export{Config: small}, values); err != nil || len(contents(t, real)) != 3 {
		t.Errorf("through a link: %v, %d files", err, len(contents(t, real)))
	}
}

// Neither side holds a large parameter: all that is allocated while 40 MB go out and come back is less than its largest one.
func TestMemory(t *testing.T) {
	c := gpt.Config{Layers: 1, Heads: 1, Width: 64, Vocab: 100_000, Positions: 4, Bias: true}
	largest := uint64(c.Vocab * c.Width * 4)
	dir := filepath.Join(t.TempDir(), "out")
	most := 0
	wrote := allocated(t, func() error {
		return hf.Write(dir, hf.Export{Config: c, ShardBytes: 1e6}, func(name string, lo int, dst []float32) error {
			most = max(most, len(dst))
			return values("x", lo&0xff, dst[:1])
		})
	})
	dst := make([]float32, 1<<16)
	read := allocated(t, func() error {
		f, err := hf.Open(dir)
		if err != nil {
			return err
		}
		defer f.Close()
		for _, p := range params(t, c) {
			for lo := 0; lo < p.Len(); lo += len(dst) {
				if err := f.Read(p.Name, lo, dst[:min(len(dst), p.Len()-lo)]); err != nil {
					return err
				}
			}
		}
		return nil
	})
	t.Logf("largest parameter %d bytes; written with %d bytes, %d elements at a time; read with %d bytes", largest, wrote, most, read)
	if most > 1<<19 || wrote > largest/2 || read > largest/2 { // under the race detector pools forget some of what they hold
		t.Errorf("written with %d bytes (%d elements at a time), read with %d", wrote, most, read)
	}
}

// allocated is the bytes that f allocates, freed or not.
func allocated(t *testing.T, f func() error) uint64 {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := f(); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// A head is compared without holding it either.
func TestMemoryOfHead(t *testing.T) {
	c := gpt.Config{Layers: 1, Heads: 1, Width: 32, Vocab: 50_000, Positions: 4, Bias: true}
	f := plain(t, c)
	f.tensors["lm_head.weight"] = f.tensors["transformer.wte.weight"]
	dir := f.make(t)
	if bytes := allocated(t, func() error {
		f, err := hf.Open(dir)
		if err != nil {
			return err
		}
		return f.Close()
	}); bytes > 50_000*32*4 {
		t.Errorf("opened with %d bytes", bytes)
	}
	// The last element is compared too.
	x := f.tensors["lm_head.weight"]
	x.data = bytes.Clone(x.data)
	x.data[len(x.data)-4] ^= 1
	f.tensors["lm_head.weight"] = x
	if _, err := hf.Open(f.make(t)); !errors.Is(err, hf.ErrUnsupported) || !strings.Contains(err.Error(), "first at element 1599999") {
		t.Error(err)
	}
}
