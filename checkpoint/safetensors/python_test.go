package safetensors_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// laxer are malformed files that the format's reference reader (0.8.0) lets pass.
var laxer = []string{
	"leading space", "line feed after the object", "name twice", "name twice, once escaped", "metadata key twice", "metadata that is null",
	"unknown field", "empty name", "overflow behind a zero",
}

// The format's reference reader, in Python, takes what is well-formed here, and refuses what is malformed but for a few known files.
func TestPythonAgrees(t *testing.T) {
	python := os.Getenv("ZEROSHARD_HF_PYTHON")
	if python == "" {
		t.Skip("ZEROSHARD_HF_PYTHON names no Python with safetensors: make hf")
	}
	dir := t.TempDir()
	put := func(format string, i int, file []byte) string {
		name := fmt.Sprintf(format, i)
		if err := os.WriteFile(filepath.Join(dir, name), file, 0o666); err != nil {
			t.Fatal(err)
		}
		return name
	}
	for i, c := range wellFormed {
		put("well-%d", i, c.file)
	}
	for i, c := range malformed {
		put("mal-%d", i, c.file)
	}
	out, err := exec.Command(python, filepath.Join("..", "..", "test", "hf", "verdicts.py"), dir).Output()
	if err != nil {
		t.Fatal(err)
	}
	var verdicts map[string]string
	if err := json.Unmarshal(out, &verdicts); err != nil {
		t.Fatal(err)
	}
	for i, c := range wellFormed {
		if says, ok := verdicts[fmt.Sprintf("well-%d", i)]; says != "" || !ok {
			t.Errorf("%s: well-formed here, there %q", c.name, says)
		}
	}
	for i, c := range malformed {
		says, ok := verdicts[fmt.Sprintf("mal-%d", i)]
		if refused := says != ""; !ok || refused == slices.Contains(laxer, c.name) {
			t.Errorf("%s: refused here, there %q", c.name, says)
		}
	}
}
