package checkpoint_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"zeroshard/checkpoint"
	"zeroshard/checkpoint/crashfs"
	"zeroshard/checkpoint/safetensors"
)

func saved(t testing.TB, fs checkpoint.FS, dir string, step, world int) *checkpoint.Store {
	t.Helper()
	s := checkpoint.NewStore(fs, dir)
	if err := s.Save(small.manifest(step), small.sources(step, world)); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestAnyWorld saves by worlds of many sizes, also larger than a parameter has elements, on the disk and in memory: what is read back does
// not depend on who saved.
func TestAnyWorld(t *testing.T) {
	for _, fs := range []checkpoint.FS{checkpoint.OS{}, &crashfs.FS{}} {
		for world := 1; world <= 9; world++ {
			dir := filepath.Join(t.TempDir(), "checkpoints")
			s := saved(t, fs, dir, 5, world)
			step, err := s.Open(5)
			if err != nil {
				t.Fatal(err)
			}
			small.check(t, step)
			if err := step.Verify(); err != nil {
				t.Error(err)
			}
			if err := step.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestEveryBit flips each bit of a step, one after the other: it is found and its file named, or the file is not one of the step.
func TestEveryBit(t *testing.T) {
	one := toy{params: small.params[:1], states: []string{"m"}}
	f := &crashfs.FS{}
	s := checkpoint.NewStore(f, "c")
	if err := s.Save(one.manifest(3), one.sources(3, 2)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Verify(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"step-00000003/rank-00000.safetensors", "step-00000003/rank-00001.safetensors", "step-00000003/manifest.json", "latest"} {
		r, err := f.Open("c/" + name)
		if err != nil {
			t.Fatal(err)
		}
		stride := 1
		if testing.Short() {
			stride = 37
		}
		for bit := 0; bit < int(r.Size())*8; bit += stride {
			if bit/8 > 600 && bit/8 < int(r.Size())-200 && bit%101 != 0 {
				continue // the spaces that fill a header up to a page
			}
			if err := f.Flip("c/"+name, bit); err != nil {
				t.Fatal(err)
			}
			_, err := s.Verify()
			if err == nil || !strings.Contains(err.Error(), name) {
				t.Fatalf("bit %d of %s: found %v", bit, name, err)
			}
			if err := f.Flip("c/"+name, bit); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestDamageIsNamed reads only what is damaged, and other things: the first fails and names file and tensor, the others do not mind.
func TestDamageIsNamed(t *testing.T) {
	big := toy{params: []checkpoint.Param{{Name: "left", Shape: []int{1 << 18}}, {Name: "right", Shape: []int{1 << 20}}}}
	dir := filepath.Join(t.TempDir(), "checkpoints")
	s := checkpoint.NewStore(checkpoint.OS{}, dir)
	if err := s.Save(big.manifest(1), big.sources(1, 1)); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(s.StepDir(1), "rank-00000.safetensors")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	raw[len(raw)-5] ^= 16
	if err := os.WriteFile(path, raw, 0o644); err != nil {
		t.Fatal(err)
	}
	step, err := s.Open(1)
	if err != nil {
		t.Fatal(err)
	}
	defer step.Close()
	if err := step.Read("left", checkpoint.Weights, 0, make([]float32, 1<<18)); err != nil {
		t.Errorf("the other tensor: %v", err)
	}
	var bad *checkpoint.CorruptError
	if err := step.Read("right", checkpoint.Weights, 1<<20-1, make([]float32, 1)); !errors.As(err, &bad) || bad.File != path || bad.Tensor != "weights/right" {
		t.Errorf("the damaged one: %v", err)
	}
	if err := step.Verify(); !errors.As(err, &bad) || bad.Tensor != "weights/right" || bad.Offset != 5<<20 {
		t.Errorf("verify: %v", err)
	}
}

// TestShapeOfFiles opens a file with nothing of this package but the format's rules.
func TestShapeOfFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "checkpoints")
	s := saved(t, checkpoint.OS{}, dir, 7, 2)
	f, err := safetensors.Open(filepath.Join(s.StepDir(7), "rank-00001.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	part, ok := f.Lookup("m/b/c")
	if !ok || !slices.Equal(part.Shape, []int64{350}) || f.Metadata["start:m/b/c"] != "350" {
		t.Errorf("a part: %v %v, starts at %q", part, ok, f.Metadata["start:m/b/c"])
	}
	if whole, ok := f.Lookup("weights/scalar"); !ok || len(whole.Shape) != 0 || f.Metadata["start:weights/scalar"] != "" {
		t.Errorf("a whole one: %v %v", whole, ok)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "latest")); err != nil || string(text) != "step-00000007\n" {
		t.Errorf("latest: %q %v", text, err)
	}
	var m map[string]any
	text, err := os.ReadFile(filepath.Join(s.StepDir(7), "manifest.json"))
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err != nil || m["step"] != 7.0 {
		t.Errorf("manifest: %v %v", m["step"], err)
	}
}

func TestStepsAndLeftovers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "checkpoints")
	s := checkpoint.NewStore(checkpoint.OS{}, dir)
	if _, err := s.Newest(); !errors.Is(err, checkpoint.ErrNone) {
		t.Errorf("nothing there: %v", err)
	}
	for _, step := range []int{1, 2, 3, 10} {
		saved(t, checkpoint.OS{}, dir, step, 1)
	}
	if err := s.Save(small.manifest(10), small.sources(10, 1)); !errors.Is(err, checkpoint.ErrExists) {
		t.Errorf("saved twice: %v", err)
	}
	for _, name := range []string{"step-00000011", ".step-00000012.tmp", "step-13", "notes"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	steps, err := s.Steps()
	rest, _ := s.Leftovers()
	if !slices.Equal(steps, []int{1, 2, 3, 10}) || !slices.Equal(rest, []string{".step-00000012.tmp", "notes", "step-00000011", "step-13"}) {
		t.Errorf("steps %v, left over %v, %v", steps, rest, err)
	}
	if _, err := s.Verify(); err != nil {
		t.Errorf("leftovers are no fault: %v", err)
	}
	if err := s.Clean(); err != nil {
		t.Error(err)
	}
	if rest, _ := s.Leftovers(); slices.Contains(rest, ".step-00000012.tmp") || !slices.Contains(rest, "notes") {
		t.Errorf("after Clean: %v", rest)
	}
	if err := s.Has(4); !errors.Is(err, checkpoint.ErrNone) || !strings.Contains(err.Error(), "1, 2, 3, 10") {
		t.Errorf("a step that is not there: %v", err)
	}
	if gone, err := s.Supersede(2); err != nil || !slices.Equal(gone, []int{10, 3}) {
		t.Errorf("superseded %v, %v", gone, err)
	}
	if _, err := s.Verify(); err != nil {
		t.Error(err)
	}
	if _, err := s.Prune(0); !errors.Is(err, checkpoint.ErrMismatch) {
		t.Errorf("keep nothing: %v", err)
	}
	if gone, err := s.Prune(1); err != nil || !slices.Equal(gone, []int{1}) {
		t.Errorf("pruned %v, %v", gone, err)
	}
	if rest, _ := s.Leftovers(); slices.ContainsFunc(rest, func(n string) bool { return strings.HasPrefix(n, ".") }) {
		t.Errorf("after Prune: %v", rest)
	}
}

func TestFind(t *testing.T) {
	run := t.TempDir()
	dir := filepath.Join(run, "checkpoints")
	s := saved(t, checkpoint.OS{}, dir, 4, 1)
	for _, c := range []struct {
		dir  string
		step int
		err  bool
	}{{run, -1, false}, {run + "/", -1, false}, {dir, -1, false}, {s.StepDir(4), 4, false}, {t.TempDir(), 0, true}, {run + "/absent", 0, true}} {
		found, step, err := checkpoint.Find(checkpoint.OS{}, c.dir)
		if (err != nil) != c.err || err == nil && (step != c.step || found.Dir() != dir) {
			t.Errorf("%s: %v, step %d, %v", c.dir, found, step, err)
		}
		if err != nil && !checkpoint.IsNone(err) {
			t.Errorf("%s: %v", c.dir, err)
		}
	}
}

func TestFits(t *testing.T) {
	m := small.manifest(1)
	if err := m.Fits(small.params, small.states); err != nil {
		t.Error(err)
	}
	other := slices.Clone(small.params)
	other[0].Shape = []int{5, 3}
	other[1].Name = "b/d"
	other[4].Frozen = false
	err := m.Fits(other, []string{"m"})
	if !errors.Is(err, checkpoint.ErrMismatch) {
		t.Fatal(err)
	}
	for _, part := range []string{`"a" has shape [3 5] in the checkpoint, [5 3]`, `"b/d" is not in the checkpoint`, `"b/c" of the checkpoint is not in`, `"ice" was frozen`, "[m v]"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is missing in: %v", part, err)
		}
	}
}

func TestDiff(t *testing.T) {
	dir := t.TempDir()
	a, b := saved(t, checkpoint.OS{}, dir+"/a", 1, 3), saved(t, checkpoint.OS{}, dir+"/b", 1, 2)
	saved(t, checkpoint.OS{}, dir+"/b", 2, 2)
	open := func(s *checkpoint.Store, step int) *checkpoint.Saved {
		o, err := s.Open(step)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { o.Close() })
		return o
	}
	none := func(d checkpoint.Difference) bool { t.Errorf("a difference: %v", d); return true }
	if err := checkpoint.Diff(open(a, 1), open(b, 1), none); err != nil {
		t.Error(err)
	}
	var first []checkpoint.Difference
	if err := checkpoint.Diff(open(a, 1), open(b, 2), func(d checkpoint.Difference) bool { first = append(first, d); return false }); err != nil || len(first) != 1 {
		t.Fatal(first, err)
	}
	if d := first[0]; d.Tensor != "weights/a" || d.Element != 0 || d.Count == 0 || d.Of != 15 {
		t.Errorf("the first: %v", d)
	}
}

func TestConsolidate(t *testing.T) {
	dir := t.TempDir()
	s := saved(t, checkpoint.OS{}, dir+"/c", 9, 4)
	step, err := s.Open(9)
	if err != nil {
		t.Fatal(err)
	}
	defer step.Close()
	for _, all := range []bool{false, true} {
		path := filepath.Join(dir, map[bool]string{true: "all", false: "weights"}[all]+".safetensors")
		if err := step.Consolidate(checkpoint.OS{}, path, all); err != nil {
			t.Fatal(err)
		}
		if err := step.Consolidate(checkpoint.OS{}, path, all); !errors.Is(err, os.ErrExist) {
			t.Errorf("a file is in the way: %v", err)
		}
		f, err := safetensors.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		want := len(small.params)
		if all {
			want += 2 * (len(small.params) - 1)
		}
		if len(f.Tensors) != want {
			t.Errorf("%d tensors, want %d", len(f.Tensors), want)
		}
		for _, tensor := range f.Tensors {
			state, param, ok := strings.Cut(tensor.Name, "/")
			if !ok || state == "b" {
				state, param = checkpoint.Weights, tensor.Name
			}
			got := make([]float32, tensor.Len())
			if err := f.Float32s(tensor, 0, got); err != nil {
				t.Error(err)
			}
			for i, v := range got {
				if v != value(9, state, param, i) {
					t.Fatalf("%s: element %d", tensor.Name, i)
				}
			}
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestFigures(t *testing.T) {
	s := saved(t, &crashfs.FS{}, "c", 2, 3)
	step, err := s.Open(2)
	if err != nil {
		t.Fatal(err)
	}
	f, err := step.Figures("scalar", "m")
	v := value(2, "m", "scalar", 0)
	if err != nil || f.Min != v || f.Max != v || f.NotFinite != 0 || f.FirstNotFinite != -1 {
		t.Errorf("%+v %v", f, err)
	}
	if f, err := step.Figures("none", checkpoint.Weights); err != nil || f.Norm != 0 {
		t.Errorf("no elements: %+v %v", f, err)
	}
}

// TestManifestIsExact: text that means the same but is not the text that was written is damage.
func TestManifestIsExact(t *testing.T) {
	f := &crashfs.FS{}
	saved(t, f, "c", 1, 1)
	r, err := f.Open("c/step-00000001/manifest.json")
	if err != nil {
		t.Fatal(err)
	}
	text := make([]byte, r.Size())
	if _, err := r.ReadAt(text, 0); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(string) string{
		"a space":          func(s string) string { return s + " " },
		"another key case": func(s string) string { return strings.Replace(s, `"step"`, `"Step"`, 1) },
		"an unknown key":   func(s string) string { return strings.Replace(s, `{`, `{"more":1,`, 1) },
		"a key twice":      func(s string) string { return strings.Replace(s, `"step": 1,`, `"step": 1, "step": 1,`, 1) },
		"another number":   func(s string) string { return strings.Replace(s, `"step": 1,`, `"step": 2,`, 1) },
		"cut short":        func(s string) string { return s[:len(s)/2] },
		"empty":            func(string) string { return "" },
		"a newer format":   func(s string) string { return strings.Replace(s, `"format": 1`, `"format": 2`, 1) },
	} {
		changed := change(string(text))
		if changed == string(text) {
			t.Fatalf("%s changes nothing", name)
		}
		g := &crashfs.FS{}
		if err := g.MkdirAll("c/step-00000001"); err != nil {
			t.Fatal(err)
		}
		w, err := g.Create("c/step-00000001/manifest.json")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(changed)); err != nil {
			t.Fatal(err)
		}
		_, err = checkpoint.ReadManifest(g, "c/step-00000001")
		if name == "a newer format" {
			if !errors.Is(err, checkpoint.ErrMismatch) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if !errors.Is(err, checkpoint.ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzManifest(f *testing.F) {
	fs := &crashfs.FS{}
	saved(f, fs, "c", 1, 2)
	r, err := fs.Open("c/step-00000001/manifest.json")
	if err != nil {
		f.Fatal(err)
	}
	text := make([]byte, r.Size())
	if _, err := r.ReadAt(text, 0); err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{}`))
	f.Add([]byte(`{"format":1,"files":[{"name":"a","bytes":-1,"block":0,"crc32c":""}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		g := &crashfs.FS{}
		if err := g.MkdirAll("c"); err != nil {
			t.Fatal(err)
		}
		w, err := g.Create("c/manifest.json")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(text); err != nil {
			t.Fatal(err)
		}
		if m, err := checkpoint.ReadManifest(g, "c"); err == nil && m.Format != checkpoint.Format {
			t.Errorf("format %d was taken", m.Format)
		}
	})
}
