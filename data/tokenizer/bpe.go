package tokenizer

import (
	"strings"
	"sync"
	"unicode/utf8"
)

// bpe is a byte-pair encoding of GPT-2's kind.
type bpe struct {
	name  string
	words [][]byte // by id; nil where there is none
	eot   int32    // −1: none
	piece func(dst []int32, piece string) []int32
	files map[string][]byte // what Save writes
	known sync.Pool         // of map[string][]int32: ids of pieces that came before
}

// A text says the same words again and again, so the ids of short pieces are kept: at most knownPieces for each goroutine.
const (
	knownPieces = 1 << 16
	knownLen    = 32
)

func (b *bpe) Name() string { return b.name }

func (b *bpe) Vocab() int { return len(b.words) }

func (b *bpe) EndOfText() (int32, bool) { return max(b.eot, 0), b.eot >= 0 }

func (b *bpe) Token(id int32) ([]byte, error) {
	if id < 0 || int(id) >= len(b.words) || b.words[id] == nil {
		return nil, badID(b.name, id, len(b.words))
	}
	return b.words[id], nil
}

func (b *bpe) Encode(dst []int32, text string) []int32 {
	if !utf8.ValidString(text) {
		text = string([]rune(text))
	}
	known, _ := b.known.Get().(map[string][]int32)
	if known == nil {
		known = map[string][]int32{}
	}
	defer b.known.Put(known)
	for len(text) > 0 {
		n := pieceLen(text)
		dst = b.remember(known, dst, text[:n])
		text = text[n:]
	}
	return dst
}

// remember is piece, which it asks only for what it does not know.
func (b *bpe) remember(known map[string][]int32, dst []int32, piece string) []int32 {
	if len(piece) > knownLen {
		return b.piece(dst, piece)
	}
	ids, ok := known[piece]
	if !ok {
		ids = b.piece(nil, piece)
		if len(known) == knownPieces {
			clear(known)
		}
		known[strings.Clone(piece)] = ids
	}
	return append(dst, ids...)
}
