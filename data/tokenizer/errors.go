package tokenizer

import (
	"errors"
	"fmt"
)

// Errors of this package. All texts start with "tokenizer: ". Errors of the operating system are wrapped as they are.
var (
	// ErrUnknown is a name that is neither built in nor a folder.
	ErrUnknown = errors.New("tokenizer: unknown tokenizer")
	// ErrFolder is a folder whose files are not a vocabulary of GPT-2's kind.
	ErrFolder = errors.New("tokenizer: no vocabulary that can be used")
	// ErrID is an id that stands for no token.
	ErrID = errors.New("tokenizer: no such id")
)

func badFile(path, format string, args ...any) error {
	return fmt.Errorf("%w: %s: %s", ErrFolder, path, fmt.Sprintf(format, args...))
}

func badID(name string, id int32, vocab int) error {
	return fmt.Errorf("%w: %d: %s has ids from 0 to %d", ErrID, id, name, vocab-1)
}
