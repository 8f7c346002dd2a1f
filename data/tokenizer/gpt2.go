package tokenizer

import (
	"fmt"

	"github.com/pkoukk/tiktoken-go"
	loader "github.com/pkoukk/tiktoken-go-loader"
)

// gpt2Vocab is the size of GPT-2's vocabulary; the end of text is its last id.
const gpt2Vocab = 50257

// longPiece is the longest piece, in bytes, that tiktoken merges: beyond the longest token, and before the square of its length
// counts.
const longPiece = 256

// GPT2 is GPT-2's byte-pair encoding: 50,257 ids, the last is the end of text. Its vocabulary is in the program.
func GPT2() (Tokenizer, error) {
	// The loader is asked by hand: tiktoken's own way to an encoding goes by a variable of its package that names a download.
	ranks, err := loader.NewOfflineLoader().LoadTiktokenBpe("r50k_base.tiktoken")
	if err != nil {
		return nil, fmt.Errorf("tokenizer: GPT-2's vocabulary: %w", err)
	}
	special := map[string]int{endOfText: gpt2Vocab - 1}
	core, err := tiktoken.NewCoreBPE(ranks, special, pattern)
	if err != nil {
		return nil, fmt.Errorf("tokenizer: GPT-2's vocabulary: %w", err)
	}
	known := &tiktoken.Encoding{Name: "gpt2", PatStr: pattern, MergeableRanks: ranks, SpecialTokens: special, ExplicitNVocab: gpt2Vocab}
	enc := tiktoken.NewTiktoken(core, known, map[string]any{endOfText: true})

	b := &bpe{name: "gpt2", words: make([][]byte, gpt2Vocab), eot: gpt2Vocab - 1}
	for word, id := range ranks {
		b.words[id] = []byte(word)
	}
	b.words[b.eot] = []byte(endOfText)
	long, bytes := rankMerges(ranks), byteIDs(b.words)
	b.piece = func(dst []int32, piece string) []int32 {
		if len(piece) > longPiece {
			return long.merge(dst, piece, bytes)
		}
		for _, id := range enc.EncodeOrdinary(piece) {
			dst = append(dst, int32(id))
		}
		return dst
	}
	return b, nil
}

// rankMerges merges what makes a token; ids are ranks.
func rankMerges(ranks map[string]int) merges {
	return func(piece string, left, right part) (rank, id int32, ok bool) {
		n, ok := ranks[piece[left.start:right.end]]
		return int32(n), int32(n), ok
	}
}

// byteIDs are the ids of the 256 bytes.
func byteIDs(words [][]byte) *[256]int32 {
	var out [256]int32
	for id, w := range words {
		if len(w) == 1 {
			out[w[0]] = int32(id)
		}
	}
	return &out
}
