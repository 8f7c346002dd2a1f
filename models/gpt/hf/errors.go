package hf

import "errors"

// Errors of this package. All texts start with "hf: ". Errors of the operating system, and those of packages safetensors and gpt, are
// wrapped as they are.
var (
	// ErrFolder is a folder without a file that it needs, with one that cannot be understood, or whose files contradict each other.
	ErrFolder = errors.New("hf: bad folder")
	// ErrUnsupported is a model that package gpt cannot compute, or weights in a form that is not read.
	ErrUnsupported = errors.New("hf: unsupported model")
	// ErrTensors is weights that are not those of the configuration: missing, too many, or of another shape.
	ErrTensors = errors.New("hf: the weights do not fit config.json")
	// ErrParameter is a parameter that the model has not, or elements outside it: a bug of the caller.
	ErrParameter = errors.New("hf: no such parameter")
	// ErrExport is an export that cannot be done as asked.
	ErrExport = errors.New("hf: cannot export")
)
