package tokenizer

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// Tokenizer turns text into ids and ids into bytes. It is safe for use by several goroutines at a time.
type Tokenizer interface {
	// Name is "bytes", "gpt2", or the folder's name.
	Name() string
	// Vocab is the size of the vocabulary: ids are in [0, Vocab).
	Vocab() int
	// EndOfText is the id that ends a document, false if the vocabulary has none.
	EndOfText() (id int32, ok bool)
	// Encode appends the ids of text to dst. It never gives the id of a special token.
	Encode(dst []int32, text string) []int32
	// Token is the bytes that an id stands for; of a special token, its name. They belong to the tokenizer. Error: ErrID.
	Token(id int32) ([]byte, error)
}

// endOfText is the name of GPT-2's only special token.
const endOfText = "<|endoftext|>"

// Named finds a tokenizer: "bytes", "gpt2", or a folder (see Open). Errors: ErrUnknown, and Open's.
func Named(name string) (Tokenizer, error) {
	switch name {
	case "bytes":
		return Bytes(), nil
	case "gpt2":
		return GPT2()
	}
	info, err := os.Stat(name)
	switch {
	case name == "" || errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: %q%s", ErrUnknown, name, suggest(name))
	case err != nil:
		return nil, fmt.Errorf("tokenizer: %w", err)
	case !info.IsDir():
		return nil, fmt.Errorf("%w: %s is a file: name the folder that holds vocab.json and merges.txt", ErrUnknown, name)
	}
	return Open(name)
}

// aliases are what people call the tokenizers that are built in.
var aliases = map[string]string{
	"byte": "bytes", "char": "bytes", "chars": "bytes", "utf8": "bytes", "utf-8": "bytes", "raw": "bytes",
	"gpt-2": "gpt2", "gpt_2": "gpt2", "gtp2": "gpt2", "gpt": "gpt2", "r50k_base": "gpt2", "openai-community/gpt2": "gpt2",
}

func suggest(name string) string {
	if near := aliases[strings.ToLower(name)]; near != "" {
		return ": did you mean " + near + "?"
	}
	for _, n := range []string{"bytes", "gpt2"} {
		if strings.EqualFold(name, n) || len(name) > 2 && strings.HasPrefix(n, strings.ToLower(name)) || strings.HasPrefix(strings.ToLower(name), n) {
			return ": did you mean " + n + "?"
		}
	}
	return ": there are bytes, gpt2, and folders that hold vocab.json and merges.txt"
}
