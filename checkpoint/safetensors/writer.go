package safetensors

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"unicode/utf8"
)

// Alignment is what the data part's place is a multiple of in files that this package writes: a page, so that a mapped tensor may be
// used as it lies, and the data may be written past the page cache.
const Alignment = 4096

// Place returns the tensors with Lo and Hi set so that they lie one after the other in the order given, and the bytes of all.
// Readers that map a file like multiples of an element's size: give larger types first. ErrTensor: an empty name, a name twice or of
// the metadata, invalid UTF-8, an unknown type, a bad shape.
func Place(tensors []Tensor) ([]Tensor, int64, error) {
	placed, end := slices.Clone(tensors), int64(0)
	seen := make(map[string]bool, len(tensors))
	for i := range placed {
		t := &placed[i]
		size, err := t.bytes()
		switch {
		case t.Name == "":
			return nil, 0, fmt.Errorf("%w: tensor %d has no name", ErrTensor, i)
		case t.Name == metadataKey:
			return nil, 0, fmt.Errorf("%w: %q names the metadata", ErrTensor, t.Name)
		case !utf8.ValidString(t.Name):
			return nil, 0, fmt.Errorf("%w: name %q is not UTF-8", ErrTensor, t.Name)
		case seen[t.Name]:
			return nil, 0, fmt.Errorf("%w: %q comes twice", ErrTensor, t.Name)
		case err != nil:
			return nil, 0, fmt.Errorf("%w: %q: %w", ErrTensor, t.Name, err)
		case end+size < end:
			return nil, 0, fmt.Errorf("%w: with %q the data has more bytes than an int64 counts", ErrTensor, t.Name)
		}
		seen[t.Name] = true
		t.Lo, t.Hi = end, end+size
		end = t.Hi
	}
	return placed, end, nil
}

// Marshal returns the first bytes of a file, all before the data: a multiple of Alignment. The tensors lie in the order given; their
// Lo and Hi are not read. The bytes are a function of the arguments: keys of metadata are sorted. Errors are Place's, and ErrTensor
// for metadata that is not UTF-8 and for a header over 100 MB.
func Marshal(tensors []Tensor, metadata map[string]string) ([]byte, error) {
	placed, _, err := Place(tensors)
	if err != nil {
		return nil, err
	}
	return marshal(placed, metadata)
}

func marshal(placed []Tensor, metadata map[string]string) ([]byte, error) {
	b := append(make([]byte, lead), '{')
	if len(metadata) > 0 {
		for k, v := range metadata {
			if !utf8.ValidString(k) || !utf8.ValidString(v) {
				return nil, fmt.Errorf("%w: metadata %q: %q is not UTF-8", ErrTensor, k, v)
			}
		}
		text, err := json.Marshal(metadata)
		if err != nil {
			return nil, fmt.Errorf("%w: metadata: %w", ErrTensor, err)
		}
		b = append(append(b, `"`+metadataKey+`":`...), text...)
		b = append(b, ',')
	}
	for _, t := range placed {
		name, err := json.Marshal(t.Name)
		if err != nil {
			return nil, fmt.Errorf("%w: %q: %w", ErrTensor, t.Name, err)
		}
		b = append(append(b, name...), `:{"dtype":"`+string(t.DType)+`","shape":`...)
		b = appendIntegers(b, t.Shape)
		b = append(b, `,"data_offsets":`...)
		b = append(appendIntegers(b, []int64{t.Lo, t.Hi}), "},"...)
	}
	if b[len(b)-1] == ',' {
		b = b[:len(b)-1]
	}
	b = append(b, '}')
	for len(b)%Alignment != 0 {
		b = append(b, ' ')
	}
	n := len(b) - lead
	if n > maxHeader {
		return nil, fmt.Errorf("%w: the header of %d tensors has %d bytes, readers take at most %d", ErrTensor, len(placed), n, maxHeader)
	}
	binary.LittleEndian.PutUint64(b, uint64(n))
	return b, nil
}

func appendIntegers(b []byte, list []int64) []byte {
	b = append(b, '[')
	for i, n := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, n, 10)
	}
	return append(b, ']')
}

// Writer writes a file: the header at once, then the data as it comes.
type Writer struct {
	w      io.Writer
	placed []Tensor
	end    int64 // bytes of data that the header announces
	at     int64 // bytes of data that came
	err    error // of w; it sticks
}

// NewWriter writes the header of a file with these tensors, in this order. Errors are Marshal's and w's.
func NewWriter(w io.Writer, tensors []Tensor, metadata map[string]string) (*Writer, error) {
	placed, end, err := Place(tensors)
	if err != nil {
		return nil, err
	}
	head, err := marshal(placed, metadata)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(head); err != nil {
		return nil, fmt.Errorf("safetensors: %w", err)
	}
	return &Writer{w: w, placed: placed, end: end}, nil
}

// Write appends to the data: the tensors' bytes, row-major, little-endian, in the order of the header, in pieces of any size. ErrSize:
// the data would be longer than the tensors; nothing of p is written then.
func (w *Writer) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	if int64(len(p)) > w.end-w.at {
		return 0, fmt.Errorf("%w: %d bytes at %d, the tensors end at %d", ErrSize, len(p), w.at, w.end)
	}
	n, err := w.w.Write(p)
	w.at += int64(n)
	if err != nil {
		w.err = fmt.Errorf("safetensors: %w", err)
	}
	return n, w.err
}

// Close says whether the data is complete: ErrSize names the tensor that is not. It does not close the writer below.
func (w *Writer) Close() error {
	if w.err != nil || w.at == w.end {
		return w.err
	}
	i := slices.IndexFunc(w.placed, func(t Tensor) bool { return t.Hi > w.at })
	t := w.placed[i]
	return fmt.Errorf("%w: %d bytes of %d came: tensor %q lacks %d", ErrSize, w.at, w.end, t.Name, t.Hi-max(t.Lo, w.at))
}
