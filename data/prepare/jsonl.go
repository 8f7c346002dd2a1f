package prepare

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// maxLine is the longest line of a JSONL file, in bytes: a line is in memory as a whole.
const maxLine = 64 << 20

// lineReader reads the documents of a JSONL file.
type lineReader struct {
	path  string
	field string
	in    *bufio.Reader
	line  int // read so far
	limit int
}

// bom may stand at the beginning of a UTF-8 file. It is no part of the first document.
const bom = "\uFEFF"

func newLineReader(path, field string, r io.Reader) *lineReader {
	in := bufio.NewReaderSize(r, 1<<16)
	if head, _ := in.Peek(len(bom)); string(head) == bom {
		_, _ = in.Discard(len(bom))
	}
	return &lineReader{path: path, field: field, in: in, limit: maxLine}
}

// next is the next document, io.EOF after the last. Empty lines are none.
func (l *lineReader) next() (string, error) {
	for {
		raw, err := l.read()
		if err != nil {
			return "", err
		}
		if raw = bytes.TrimSpace(raw); len(raw) > 0 {
			return l.parse(raw)
		}
	}
}

// read is the next line.
func (l *lineReader) read() ([]byte, error) {
	var line []byte
	l.line++
	for {
		some, err := l.in.ReadSlice('\n')
		line = append(line, some...)
		switch {
		case len(line) > l.limit:
			return nil, l.fault("longer than %d bytes", l.limit)
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && len(line) > 0, err == nil:
			return line, nil
		}
		return nil, err
	}
}

func (l *lineReader) parse(raw []byte) (string, error) {
	if raw[0] != '{' {
		return "", l.fault("want a JSON object on each line, got %.20q", raw)
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(raw, &object); err != nil {
		return "", l.fault("%v", err.Error())
	}
	value, ok := object[l.field]
	if !ok {
		return "", l.fault("no field %q%s", l.field, has(object))
	}
	if value[0] != '"' {
		return "", l.fault("field %q is no string: %.20q", l.field, value)
	}
	var text string
	if err := json.Unmarshal(value, &text); err != nil {
		return "", l.fault("%v", err.Error())
	}
	return text, nil
}

// has lists some fields.
func has(object map[string]json.RawMessage) string {
	names := make([]string, 0, len(object))
	for name := range object {
		names = append(names, name)
	}
	if len(names) == 0 {
		return ": the object is empty"
	}
	slices.Sort(names)
	if len(names) > 5 {
		names = append(names[:5], "…")
	}
	return fmt.Sprintf(": there are %s", strings.Join(names, ", "))
}

func (l *lineReader) fault(format string, args ...any) error {
	return &InputError{Path: l.path, Line: l.line, Reason: fmt.Sprintf(format, args...)}
}
