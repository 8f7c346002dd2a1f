package train_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"zeroshard/train"
)

func TestSummaryIsReadableWhateverTheLoss(t *testing.T) {
	path := filepath.Join(t.TempDir(), "summary.json")
	s := &train.Summary{Stage: 3, Ranks: 2, Steps: 2, Losses: train.Numbers([]float64{0.1, math.NaN()}),
		ValLoss: train.Number(math.Inf(1)), Memory: []train.Memory{{Rank: 0, PlannedPeak: 1 << 40, ByKind: map[string]int64{"parameter": 7}}}}
	if err := train.WriteJSON(path, s); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatalf("%v in\n%s", err, data)
	}
	for _, name := range []string{"stage", "ranks", "steps", "losses", "val_loss", "state_sha256", "tokens_per_s",
		"wire_bytes_per_step", "plan_sha256", "memory"} {
		if _, ok := got[name]; !ok {
			t.Errorf("field %q is missing", name)
		}
	}
	if l := got["losses"].([]any); l[0] != 0.1 || l[1] != nil || got["val_loss"] != nil {
		t.Errorf("losses %v, val_loss %v", l, got["val_loss"])
	}
	m := got["memory"].([]any)[0].(map[string]any)
	for _, name := range []string{"rank", "planned_peak", "used_peak", "by_kind"} {
		if _, ok := m[name]; !ok {
			t.Errorf("field memory.%q is missing", name)
		}
	}
	w := got["wire_bytes_per_step"].(map[string]any)
	for _, name := range []string{"all_gather", "reduce_scatter", "scalars"} {
		if _, ok := w[name]; !ok {
			t.Errorf("field wire_bytes_per_step.%q is missing", name)
		}
	}
}

func TestNumberKeepsItsBits(t *testing.T) {
	for _, f := range []float64{0, 1.0 / 3, math.MaxFloat64, math.SmallestNonzeroFloat64, -2.5} {
		data, err := json.Marshal(train.Number(f))
		if err != nil {
			t.Fatal(err)
		}
		var back float64
		if err := json.Unmarshal(data, &back); err != nil || back != f {
			t.Errorf("%v became %s, then %v (%v)", f, data, back, err)
		}
	}
}

func TestWriteJSONLeavesNothingHalfDone(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s.json")
	for i := range 2 { // the second write replaces the first
		if err := train.WriteJSON(path, i); err != nil {
			t.Fatal(err)
		}
	}
	if err := train.WriteJSON(path, func() {}); err == nil {
		t.Error("a func was written as JSON")
	}
	if err := train.WriteJSON(filepath.Join(dir, "none", "s.json"), 1); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file in a missing folder: %v", err)
	}
	if err := os.Mkdir(filepath.Join(dir, "folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := train.WriteJSON(filepath.Join(dir, "folder"), 1); err == nil {
		t.Error("a folder was replaced by a file")
	}
	names := list(t, dir)
	if len(names) != 2 {
		t.Errorf("%v are left, want folder and s.json", names)
	}
	if data, _ := os.ReadFile(path); string(data) != "1\n" {
		t.Errorf("s.json is %q", data)
	}
}

func TestWritableWritesNothing(t *testing.T) {
	dir := t.TempDir()
	for path, ok := range map[string]bool{filepath.Join(dir, "a"): true, dir: false, filepath.Join(dir, "no", "a"): false, os.DevNull: true} {
		err := train.Writable(path)
		if (err == nil) != ok {
			t.Errorf("%s: %v", path, err)
		}
		var pe *fs.PathError
		if err != nil && !errors.As(err, &pe) {
			t.Errorf("%s: %v is no PathError", path, err)
		}
	}
	if names := list(t, dir); len(names) != 0 {
		t.Errorf("left %v", names)
	}
}

func TestFolder(t *testing.T) {
	f := train.Folder(filepath.Join(t.TempDir(), "runs", "a"))
	if err := f.Check(); err != nil {
		t.Fatal(err)
	}
	if err := f.Create(map[string]any{"stage": 3}); err != nil {
		t.Fatal(err)
	}
	if err := f.Check(); !errors.Is(err, train.ErrExists) {
		t.Errorf("a folder with a run in it: %v", err)
	}
	if err := f.Create(1); !errors.Is(err, train.ErrExists) {
		t.Errorf("a second run in the folder: %v", err)
	}
	if err := f.Finish(&train.Summary{}); err != nil {
		t.Fatal(err)
	}
	if names := list(t, string(f)); len(names) != 2 {
		t.Errorf("files %v, want settings.json and summary.json", names)
	}
	empty := train.Folder(t.TempDir())
	if err := empty.Check(); err != nil {
		t.Errorf("an empty folder: %v", err)
	}
	file := train.Folder(filepath.Join(string(f), train.SummaryFile))
	if err := file.Check(); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("a file as folder: %v", err)
	}
}

func list(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
