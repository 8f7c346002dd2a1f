// Package tokenizer turns text into token ids and back: bytes, GPT-2's byte-pair encoding, and vocabularies of that kind from a
// folder in Hugging Face's form.
//
// It never touches the network, normalizes nothing, and adds no id of its own: no prefix, no end of text.
//
//  1. Encode gives the ids of the reference encoders, for every text: a text is cut into pieces by GPT-2's pattern, and the bytes
//     of a piece are merged pair by pair, the lowest rank first. Letters, numbers and spaces are those of Go's Unicode tables
//     (version 15; a text in a script that is newer may be cut elsewhere than by an encoder with newer tables).
//  2. Ids of special tokens never come out of a text, whatever is in it.
//  3. The bytes of all tokens, joined, are the text; where that is no UTF-8, each byte that is none is U+FFFD to every tokenizer
//     but [Bytes], which keeps it.
//  4. At the places that [LastCut] finds, the ids of a text are those of its parts.
//  5. Time is n·log n in the length of a piece, and tokenizers are safe for use by several goroutines at a time.
package tokenizer
