package safetensors_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"strings"
	"testing"

	"zeroshard/checkpoint/safetensors"
)

func TestParseRefuses(t *testing.T) {
	for _, c := range malformed {
		t.Run(c.name, func(t *testing.T) {
			h, err := safetensors.Parse(c.file, int64(len(c.file)))
			var at *safetensors.FormatError
			if h != nil || !errors.Is(err, safetensors.ErrCorrupt) || !errors.As(err, &at) {
				t.Fatalf("header %v, error %v", h, err)
			}
			if !strings.HasPrefix(err.Error(), "safetensors: ") || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%q does not say %q", err, c.says)
			}
			if at.Offset < 0 || at.Offset > int64(len(c.file)) {
				t.Errorf("the fault is at byte %d of %d", at.Offset, len(c.file))
			}
			if _, again := safetensors.NewReader(bytes.NewReader(c.file), int64(len(c.file)), "x"); !errors.Is(again, safetensors.ErrCorrupt) || !strings.Contains(again.Error(), "safetensors: x: ") {
				t.Errorf("NewReader says %v", again)
			}
		})
	}
}

func TestParse(t *testing.T) {
	for _, c := range wellFormed {
		t.Run(c.name, func(t *testing.T) {
			h, err := safetensors.Parse(c.file, int64(len(c.file)))
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, x := range h.Tensors {
				names = append(names, x.Name)
			}
			if got := strings.Join(names, " "); got != c.names {
				t.Errorf("tensors %q, want %q", got, c.names)
			}
			checkHeader(t, c.file, h)
		})
	}
}

// Every file that ends earlier than it should is refused, wherever it ends.
func TestTruncated(t *testing.T) {
	for _, c := range wellFormed {
		for n := range c.file {
			if _, err := safetensors.Parse(c.file[:n], int64(n)); !errors.Is(err, safetensors.ErrCorrupt) {
				t.Errorf("%s: the first %d bytes of %d: %v", c.name, n, len(c.file), err)
			}
			if _, err := safetensors.NewReader(bytes.NewReader(c.file[:n]), int64(len(c.file)), "x"); err == nil && n < 10 {
				t.Errorf("%s: %d bytes that say they are %d were read", c.name, n, len(c.file))
			}
		}
	}
}

// checkHeader proves what Parse promises of a header that it accepted.
func checkHeader(t *testing.T, raw []byte, h *safetensors.Header) {
	t.Helper()
	end := int64(0)
	for _, x := range h.Tensors {
		if x.Lo != end || x.Hi-x.Lo != x.Len()*int64(x.DType.Size()) || x.Name == "" {
			t.Fatalf("tensor %+v after byte %d", x, end)
		}
		end = x.Hi
	}
	if h.Data+end != int64(len(raw)) {
		t.Fatalf("the data ends at %d of %d", h.Data+end, len(raw))
	}
	// The standard library reads the same out of it.
	text := raw[8:h.Data]
	var std map[string]struct {
		DType   string  `json:"dtype"`
		Shape   []int64 `json:"shape"`
		Offsets []int64 `json:"data_offsets"`
	}
	if !json.Valid(text) {
		t.Fatalf("accepted a header that is no JSON: %q", text)
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	var meta map[string]string
	if m, ok := all["__metadata__"]; ok {
		if err := json.Unmarshal(m, &meta); err != nil {
			t.Fatal(err)
		}
		delete(all, "__metadata__")
		text, _ = json.Marshal(all)
	}
	if err := json.Unmarshal(text, &std); err != nil {
		t.Fatal(err)
	}
	if len(std) != len(h.Tensors) || !maps.Equal(meta, h.Metadata) {
		t.Fatalf("%d tensors and metadata %v, encoding/json reads %d and %v", len(h.Tensors), h.Metadata, len(std), meta)
	}
	for _, x := range h.Tensors {
		if s := std[x.Name]; s.DType != string(x.DType) || !reflect.DeepEqual(s.Shape, x.Shape) || s.Offsets[0] != x.Lo || s.Offsets[1] != x.Hi {
			t.Fatalf("tensor %+v, encoding/json reads %+v", x, s)
		}
	}
	// What is written again is read again as the same.
	head, err := safetensors.Marshal(h.Tensors, h.Metadata)
	if err != nil {
		t.Fatal(err)
	}
	if len(head)%safetensors.Alignment != 0 {
		t.Fatalf("a header of %d bytes", len(head))
	}
	again, err := safetensors.Parse(head, int64(len(head))+end)
	if err != nil {
		t.Fatal(err)
	}
	if len(h.Tensors) > 0 && !reflect.DeepEqual(again.Tensors, h.Tensors) || !maps.Equal(again.Metadata, h.Metadata) || again.Data != int64(len(head)) {
		t.Fatalf("written as %+v, read as %+v", h, again)
	}
}

func FuzzParse(f *testing.F) {
	for _, c := range malformed {
		f.Add(c.file)
	}
	for _, c := range wellFormed {
		f.Add(c.file)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		h, err := safetensors.Parse(raw, int64(len(raw)))
		if err != nil {
			if !errors.Is(err, safetensors.ErrCorrupt) || h != nil {
				t.Fatalf("header %v, error %v", h, err)
			}
			return
		}
		checkHeader(t, raw, h)
	})
}
