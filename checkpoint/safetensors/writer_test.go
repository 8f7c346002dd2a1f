package safetensors_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"zeroshard/checkpoint/safetensors"
)

func TestMarshalIsDeterministic(t *testing.T) {
	tensors := []safetensors.Tensor{
		{Name: "b", DType: safetensors.F32, Shape: []int64{2, 3}},
		{Name: `a"<é`, DType: safetensors.BF16, Shape: []int64{}, Lo: 7, Hi: 3}, // places are not read
	}
	head, err := safetensors.Marshal(tensors, map[string]string{"z": "1", "format": "pt", "m": "2"})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"__metadata__":{"format":"pt","m":"2","z":"1"},` +
		`"b":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},"a\"\u003cé":{"dtype":"BF16","shape":[],"data_offsets":[24,26]}}`
	if got := strings.TrimRight(string(head[8:]), " "); got != want || len(head) != 4096 || !bytes.Equal(head[:8], []byte{0xf8, 0xf, 0, 0, 0, 0, 0, 0}) {
		t.Errorf("%d bytes: % x %s", len(head), head[:8], got)
	}
}

func TestPlaceRefuses(t *testing.T) {
	ok := safetensors.Tensor{Name: "a", DType: safetensors.F32, Shape: []int64{1}}
	for _, c := range []struct {
		name    string
		tensors []safetensors.Tensor
		meta    map[string]string
		says    string
	}{
		{"no name", []safetensors.Tensor{{DType: safetensors.F32}}, nil, "tensor 0 has no name"},
		{"the metadata's name", []safetensors.Tensor{{Name: "__metadata__", DType: safetensors.F32}}, nil, "names the metadata"},
		{"twice", []safetensors.Tensor{ok, ok}, nil, `"a" comes twice`},
		{"not UTF-8", []safetensors.Tensor{{Name: "\xff", DType: safetensors.F32}}, nil, "not UTF-8"},
		{"unknown type", []safetensors.Tensor{{Name: "a", DType: "F4"}}, nil, `unknown element type "F4"`},
		{"negative", []safetensors.Tensor{{Name: "a", DType: safetensors.F32, Shape: []int64{-1}}}, nil, "negative dimension"},
		{"overflow", []safetensors.Tensor{{Name: "a", DType: safetensors.F32, Shape: []int64{1 << 62}}}, nil, "more bytes than an int64 counts"},
		{"overflow of the sum", []safetensors.Tensor{{Name: "a", DType: safetensors.U8, Shape: []int64{math.MaxInt64}}, {Name: "b", DType: safetensors.U8, Shape: []int64{1}}}, nil, `with "b" the data`},
		{"metadata not UTF-8", nil, map[string]string{"k": "\xff"}, "is not UTF-8"},
	} {
		_, err := safetensors.NewWriter(&bytes.Buffer{}, c.tensors, c.meta)
		if !errors.Is(err, safetensors.ErrTensor) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestWriterCounts(t *testing.T) {
	tensors := []safetensors.Tensor{
		{Name: "a", DType: safetensors.U8, Shape: []int64{3}},
		{Name: "none", DType: safetensors.U8, Shape: []int64{0}},
		{Name: "b", DType: safetensors.U8, Shape: []int64{2}},
	}
	for n, says := range []string{`tensor "a" lacks 3`, `tensor "a" lacks 2`, `tensor "a" lacks 1`, `tensor "b" lacks 2`, `tensor "b" lacks 1`, ""} {
		var b bytes.Buffer
		w, err := safetensors.NewWriter(&b, tensors, nil)
		if err != nil {
			t.Fatal(err)
		}
		if k, err := w.Write(make([]byte, 6)); k != 0 || !errors.Is(err, safetensors.ErrSize) || b.Len() != 4096 {
			t.Errorf("6 bytes of 5: wrote %d, %v", k, err)
		}
		if _, err := w.Write(make([]byte, n)); err != nil {
			t.Fatal(err)
		}
		err = w.Close()
		if says == "" && err != nil || says != "" && (!errors.Is(err, safetensors.ErrSize) || !strings.Contains(err.Error(), says)) {
			t.Errorf("closed after %d bytes: %v", n, err)
		}
	}
}

// A fault of the writer below sticks.
func TestWriterFails(t *testing.T) {
	broken := errors.New("disk full")
	for _, c := range []struct{ after, writes int }{{0, 0}, {1, 1}, {2, 2}} {
		below := &failing{after: c.after, err: broken}
		w, err := safetensors.NewWriter(below, []safetensors.Tensor{{Name: "a", DType: safetensors.U8, Shape: []int64{3}}}, nil)
		if c.writes == 0 {
			if !errors.Is(err, broken) {
				t.Errorf("the header: %v", err)
			}
			continue
		}
		for range c.writes {
			_, err = w.Write([]byte{1})
		}
		if !errors.Is(err, broken) || !errors.Is(w.Close(), broken) {
			t.Errorf("write %d: %v, then %v", c.writes, err, w.Close())
		}
	}
}

type failing struct {
	after int
	err   error
}

func (f *failing) Write(p []byte) (int, error) {
	if f.after == 0 {
		return 0, f.err
	}
	f.after--
	return len(p), nil
}

// What a writer wrote is what each kind of reader reads.
func FuzzWriteRead(f *testing.F) {
	f.Add([]byte{0, 2, 3, 1, 9, 0, 200, 4, 4}, "w", "key")
	f.Add([]byte{}, "", "")
	f.Add([]byte{5}, "\"\\\u2028\x7f", "\x00")
	f.Fuzz(func(t *testing.T, seed []byte, name, meta string) {
		types := []safetensors.DType{safetensors.F32, safetensors.BF16, safetensors.F16, safetensors.F64, safetensors.Bool, safetensors.I64}
		var tensors []safetensors.Tensor
		for i := 0; i+3 <= len(seed) && i < 60; i += 3 {
			tensors = append(tensors, safetensors.Tensor{Name: fmt.Sprint(name, i), DType: types[int(seed[i])%len(types)],
				Shape: []int64{int64(seed[i+1] % 8), int64(seed[i+2] % 8), 1}[:i%4]})
		}
		raw, err := write(tensors, map[string]string{meta: name}, seed)
		if err != nil {
			if errors.Is(err, safetensors.ErrTensor) && strings.Contains(err.Error(), "UTF-8") {
				return
			}
			t.Fatal(err)
		}
		r, err := safetensors.NewReader(bytes.NewReader(raw), int64(len(raw)), "fuzz")
		if err != nil {
			t.Fatal(err)
		}
		placed, end, err := safetensors.Place(tensors)
		if err != nil || len(placed) != len(r.Tensors) || end != int64(len(raw))-r.Data || r.Metadata[meta] != name {
			t.Fatalf("%v: %d tensors of %d, %d bytes, metadata %q", err, len(r.Tensors), len(placed), end, r.Metadata)
		}
		checkHeader(t, raw, r.Header)
		for i, x := range placed {
			// Tensors without elements may be read in another order than they were written in.
			got, ok := r.Lookup(x.Name)
			if !ok || !reflect.DeepEqual(got.Shape, append([]int64{}, x.Shape...)) || got.DType != x.DType || got.Lo != x.Lo || got.Hi != x.Hi {
				t.Fatalf("tensor %d was %+v, is %+v", i, x, got)
			}
			p := make([]byte, x.Hi-x.Lo)
			if err := r.ReadAt(got, p, 0); err != nil || !bytes.Equal(p, raw[r.Data+x.Lo:r.Data+x.Hi]) {
				t.Fatalf("tensor %q: %v", x.Name, err)
			}
		}
	})
}

// write writes a file with data that counts up, in pieces of sizes drawn from seed.
func write(tensors []safetensors.Tensor, meta map[string]string, seed []byte) ([]byte, error) {
	var b bytes.Buffer
	w, err := safetensors.NewWriter(&b, tensors, meta)
	if err != nil {
		return nil, err
	}
	_, end, err := safetensors.Place(tensors)
	if err != nil {
		return nil, err
	}
	data := make([]byte, end)
	for i := range data {
		data[i] = byte(i)
	}
	for i := 0; len(data) > 0; i++ {
		n := min(len(data), 1+int(seed[i%len(seed)]))
		if _, err := w.Write(data[:n]); err != nil {
			return nil, err
		}
		data = data[n:]
	}
	return b.Bytes(), w.Close()
}

func TestFiles(t *testing.T) {
	tensors := []safetensors.Tensor{
		{Name: "w", DType: safetensors.F32, Shape: []int64{200, 300}},
		{Name: "i", DType: safetensors.I64, Shape: []int64{3}},
	}
	raw, err := write(tensors, nil, []byte{255, 100})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "a.safetensors")
	if err := os.WriteFile(path, raw, 0o666); err != nil {
		t.Fatal(err)
	}
	for name, open := range map[string]func(string) (*safetensors.File, error){"Open": safetensors.Open, "Map": safetensors.Map} {
		f, err := open(path)
		if err != nil {
			t.Fatal(err)
		}
		w, ok := f.Lookup("w")
		if _, no := f.Lookup("v"); !ok || no || f.Name() != path {
			t.Errorf("%s: w is %v, v is %v, name %q", name, ok, no, f.Name())
		}
		got := make([]float32, 40000) // more than a block
		if err := f.Float32s(w, 20000, got); err != nil {
			t.Fatal(err)
		}
		want, err := safetensors.AppendFloat32s(nil, safetensors.F32, got)
		if err != nil || !bytes.Equal(want, raw[f.Data+80000:f.Data+240000]) {
			t.Errorf("%s: elements 20000 to 60000 are others (%v)", name, err)
		}
		if view, mapped, err := f.Bytes(w); err != nil || mapped && !bytes.Equal(view, raw[f.Data:f.Data+240000]) || mapped && name == "Open" {
			t.Errorf("%s: view of %d bytes, mapped %v, %v", name, len(view), mapped, err)
		}
		i, _ := f.Lookup("i")
		for what, err := range map[string]error{
			"elements past the end":    f.Float32s(w, 60000, got[:1]),
			"elements past the end, 2": f.Float32s(w, 1, make([]float32, 60000)),
			"elements before":          f.Float32s(w, -1, got[:1]),
			"bytes past the end":       f.ReadAt(w, make([]byte, 2), 239999),
			"bytes before":             f.ReadAt(w, make([]byte, 2), -1),
			"another file's tensor":    f.ReadAt(safetensors.Tensor{Name: "x", DType: safetensors.U8, Shape: []int64{1}, Lo: 1 << 40, Hi: 1<<40 + 1}, make([]byte, 1), 0),
		} {
			if !errors.Is(err, safetensors.ErrRange) {
				t.Errorf("%s: %s: %v", name, what, err)
			}
		}
		if err := f.Float32s(i, 0, got[:3]); !errors.Is(err, safetensors.ErrConvert) || !strings.Contains(err.Error(), "I64") {
			t.Errorf("%s: integers as fp32: %v", name, err)
		}
		if err := errors.Join(f.Close(), f.Close()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, bad := range []string{filepath.Join(t.TempDir(), "none"), t.TempDir()} {
		for name, open := range map[string]func(string) (*safetensors.File, error){"Open": safetensors.Open, "Map": safetensors.Map} {
			if _, err := open(bad); err == nil || !strings.Contains(err.Error(), bad) {
				t.Errorf("%s of %s: %v", name, bad, err)
			}
		}
	}
}

// A file that shrinks after it was opened is a fault with its place.
func TestShrunk(t *testing.T) {
	raw := file(one(fine), 8)
	f, err := safetensors.NewReader(bytes.NewReader(raw[:len(raw)-3]), int64(len(raw)), "shrunk")
	if err != nil {
		t.Fatal(err)
	}
	a, _ := f.Lookup("a")
	err = f.Float32s(a, 0, make([]float32, 2))
	if !errors.Is(err, safetensors.ErrCorrupt) || !strings.Contains(err.Error(), fmt.Sprintf("shrunk: byte %d", len(raw)-3)) {
		t.Error(err)
	}
}
