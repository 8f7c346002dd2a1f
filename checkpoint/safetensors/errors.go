package safetensors

import (
	"errors"
	"fmt"
	"strings"
)

// Errors of this package. All texts start with "safetensors: ". Errors of the operating system are wrapped as they are.
var (
	// ErrCorrupt is what every [FormatError] wraps: the file is damaged, truncated, or no safetensors file.
	ErrCorrupt = errors.New("safetensors: corrupt file")
	// ErrTensor is a tensor that cannot be written: its name, type or shape, or a name twice.
	ErrTensor = errors.New("safetensors: bad tensor")
	// ErrRange is a read outside a tensor, or a tensor outside its file: a bug of the caller.
	ErrRange = errors.New("safetensors: read outside the tensor")
	// ErrConvert is a conversion that the element type, or a value, does not allow.
	ErrConvert = errors.New("safetensors: cannot convert")
	// ErrSize is more or less data given to a Writer than its header says.
	ErrSize = errors.New("safetensors: wrong amount of data")
)

// FormatError is a fault at a place of a file.
type FormatError struct {
	File   string // "" where only a header was parsed
	Tensor string // "" where the fault is none of a tensor
	Offset int64  // byte of the file
	Reason string
}

func (e *FormatError) Error() string {
	var b strings.Builder
	b.WriteString("safetensors: ")
	if e.File != "" {
		fmt.Fprintf(&b, "%s: ", e.File)
	}
	if e.Tensor != "" {
		fmt.Fprintf(&b, "tensor %q: ", e.Tensor)
	}
	fmt.Fprintf(&b, "byte %d: %s", e.Offset, e.Reason)
	return b.String()
}

// Unwrap returns ErrCorrupt.
func (e *FormatError) Unwrap() error { return ErrCorrupt }

func fault(tensor string, offset int64, format string, args ...any) *FormatError {
	return &FormatError{Tensor: tensor, Offset: offset, Reason: fmt.Sprintf(format, args...)}
}
