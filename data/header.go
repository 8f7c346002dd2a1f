package data

import (
	"encoding/binary"
	"strings"
)

// headerBytes is llm.c's header: 256 int32, of which magic, version and count are used.
const headerBytes = 256 * 4

// The two pairs of magic and version that llm.c writes.
const (
	magic16, version16 = 20240520, 1
	magic32, version32 = 20240801, 7
)

// format is where a file's ids lie and how wide they are.
type format struct {
	width  int   // bytes of one id: 1 (text), 2 or 4
	start  int64 // byte of the first id
	tokens int64
}

// parseHeader decides what a file is from its name, its size and its first bytes: min(size, headerBytes) of them.
//
// A magic number decides before the name does. A headerless file that starts with the same four bytes would have first id 55432
// or 55713, outside GPT-2's vocabulary, and is refused by its version; a text cannot start so, its first byte is no UTF-8.
func parseHeader(path string, size int64, head []byte) (format, error) {
	if len(head) >= 4 {
		switch binary.LittleEndian.Uint32(head) {
		case magic16:
			return parseLLMC(path, size, head, format{width: 2}, version16)
		case magic32:
			return parseLLMC(path, size, head, format{width: 4}, version32)
		}
	}
	if !strings.HasSuffix(path, ".bin") {
		return format{width: 1, tokens: size}, nil
	}
	if size%2 != 0 {
		return format{}, fault(path, size-1, "half a token at the end: the file has %d bytes, tokens are 2 bytes each "+
			"(a .bin file without llm.c's header holds raw uint16 ids)", size)
	}
	return format{width: 2, tokens: size / 2}, nil
}

func parseLLMC(path string, size int64, head []byte, f format, version int32) (format, error) {
	if len(head) < headerBytes {
		return format{}, fault(path, size, "the header ends early: it has %d bytes, this magic number asks for %d", size, headerBytes)
	}
	if v := int32(binary.LittleEndian.Uint32(head[4:])); v != version {
		return format{}, fault(path, 4, "header version %d, known is %d for this magic number", v, version)
	}
	count := int32(binary.LittleEndian.Uint32(head[8:]))
	if count < 0 {
		return format{}, fault(path, 8, "header counts %d tokens", count)
	}
	f.start, f.tokens = headerBytes, int64(count)
	if want := f.start + f.tokens*int64(f.width); want != size {
		return format{}, fault(path, min(want, size), "header counts %d tokens of %d bytes, so the file should have %d bytes; it has %d",
			count, f.width, want, size)
	}
	return f, nil
}
