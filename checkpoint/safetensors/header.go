package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"
	"unicode/utf8"
)

// maxHeader is the most bytes of a header that readers of the format take.
const maxHeader = 100_000_000

// metadataKey is the header's key for the metadata; no tensor can have that name.
const metadataKey = "__metadata__"

// Header is what a file says of itself.
type Header struct {
	Tensors  []Tensor          // in order of data: they fill the data part without a hole
	Metadata map[string]string // nil where there is none
	Data     int64             // byte of the file at which the data part begins
}

// Parse reads a header from head, the first bytes of a file of size bytes: at least the length and the header; what follows is
// not looked at. Errors are *FormatError (wraps ErrCorrupt).
func Parse(head []byte, size int64) (*Header, error) {
	n, err := headerLen(head, size)
	if err != nil {
		return nil, err
	}
	if int64(len(head)) < lead+n {
		return nil, fault("", int64(len(head)), "the header ends early: it should have %d bytes, it has %d", n, len(head)-lead)
	}
	text := head[lead : lead+n]
	if text[0] != '{' {
		return nil, fault("", lead, "the header begins with %q, not with '{': no safetensors file, or a damaged one", text[:1])
	}
	if at := invalidUTF8(text); at >= 0 {
		return nil, fault("", int64(lead+at), "the header is not UTF-8")
	}
	h := &Header{Data: lead + n}
	places, err := h.scan(text)
	if err != nil {
		return nil, err
	}
	if err := h.check(places, size); err != nil {
		return nil, err
	}
	return h, nil
}

// headerLen reads and judges the first eight bytes.
func headerLen(head []byte, size int64) (int64, error) {
	if len(head) < lead || size < lead {
		return 0, fault("", min(int64(len(head)), size), "the file ends inside the header's length, its first %d bytes", lead)
	}
	n := binary.LittleEndian.Uint64(head)
	switch {
	case n > maxHeader:
		return 0, fault("", 0, "the header has %d bytes, at most %d are allowed: no safetensors file, or a damaged one", n, maxHeader)
	case int64(n) > size-lead:
		return 0, fault("", 0, "the header has %d bytes, but only %d follow in the file", n, size-lead)
	case n < 2:
		return 0, fault("", 0, "the header has %d bytes, at least 2 are needed", n)
	}
	return int64(n), nil
}

// invalidUTF8 is the place of the first byte that is not UTF-8, -1 if there is none.
func invalidUTF8(b []byte) int {
	if utf8.Valid(b) {
		return -1
	}
	at := 0
	for at < len(b) {
		r, n := utf8.DecodeRune(b[at:])
		if r == utf8.RuneError && n <= 1 {
			break
		}
		at += n
	}
	return at
}

// scan fills h from the JSON and returns the byte of the file where each tensor is named.
func (h *Header) scan(text []byte) (places map[string]int64, err error) {
	s := &scanner{b: text}
	places = map[string]int64{}
	s.object(func(key string, at int) {
		switch key {
		case metadataKey:
			h.Metadata = s.metadata()
		case "":
			s.fail(at, "a tensor has no name")
		default:
			s.tensor = key
			h.Tensors = append(h.Tensors, s.description(at))
			places[key] = int64(lead + at)
			s.tensor = ""
		}
	})
	if rest := bytes.TrimLeft(text[s.at:], " "); len(rest) > 0 {
		s.fail(len(text)-len(rest), "%q after the end of the header's object: only spaces may follow", rest[:1])
	}
	if s.err != nil {
		return nil, s.err
	}
	return places, nil
}

func (s *scanner) metadata() map[string]string {
	m := map[string]string{}
	s.object(func(key string, at int) {
		m[key] = s.text("a text in quotes: values of " + metadataKey + " are strings")
	})
	return m
}

// description reads the object that describes tensor s.tensor.
func (s *scanner) description(at int) Tensor {
	t := Tensor{Name: s.tensor}
	var offsets []int64
	s.object(func(key string, at int) {
		switch key {
		case "dtype":
			t.DType = DType(s.text("an element type in quotes"))
			if t.DType.Size() == 0 && s.err == nil {
				s.fail(at, "unknown element type %q", t.DType)
			}
		case "shape":
			t.Shape = s.integers()
		case "data_offsets":
			if offsets = s.integers(); len(offsets) != 2 && s.err == nil {
				s.fail(at, "data_offsets has %d numbers, must have 2", len(offsets))
			}
		default:
			s.fail(at, "unknown field %q", key)
		}
	})
	if s.err != nil {
		return t
	}
	switch {
	case t.DType == "":
		s.fail(at, "dtype is missing")
	case t.Shape == nil:
		s.fail(at, "shape is missing")
	case offsets == nil:
		s.fail(at, "data_offsets is missing")
	default:
		t.Lo, t.Hi = offsets[0], offsets[1]
	}
	return t
}

// check sorts the tensors by place and proves that they are as large as they say and fill the data part.
func (h *Header) check(places map[string]int64, size int64) error {
	for _, t := range h.Tensors {
		n, err := t.bytes()
		switch {
		case err != nil:
			return fault(t.Name, places[t.Name], "%v", err)
		case t.Hi < t.Lo:
			return fault(t.Name, places[t.Name], "data_offsets [%d, %d] run backwards", t.Lo, t.Hi)
		case t.Hi-t.Lo != n:
			return fault(t.Name, places[t.Name], "data_offsets [%d, %d] hold %d bytes, %s of shape %v needs %d",
				t.Lo, t.Hi, t.Hi-t.Lo, t.DType, t.Shape, n)
		}
	}
	// Tensors without elements may share their place with others: those keep the header's order, and stand before the tensor there.
	slices.SortStableFunc(h.Tensors, func(a, b Tensor) int { return cmp.Or(cmp.Compare(a.Lo, b.Lo), cmp.Compare(a.Hi, b.Hi)) })
	end := int64(0)
	for _, t := range h.Tensors {
		switch {
		case t.Lo < end:
			return fault(t.Name, places[t.Name], "its data begins at %d, inside another tensor's, which ends at %d", t.Lo, end)
		case t.Lo > end:
			return fault(t.Name, places[t.Name], "its data begins at %d, but the data before ends at %d: a hole", t.Lo, end)
		}
		end = t.Hi
	}
	switch have := size - h.Data; {
	case have < end:
		return fault("", size, "the file ends early: its tensors have %d bytes, it has %d", end, have)
	case have > end:
		return fault("", h.Data+end, "%d bytes follow the last tensor", have-end)
	}
	return nil
}
