// Package prepare makes the token files that training reads of texts.
//
// A document is a text file, or a line of a JSONL file. One text alone is cut by place: the last part of its bytes, from the
// beginning of a character, is for validation, and no id is added, so that its ids are those of nanoGPT's prepare.py for one text. Of
// several documents each goes whole, and is followed by the end-of-text id, where the vocabulary has one; by number, every tenth (at a
// fraction of a tenth) is for validation.
//
//  1. The files depend on inputs, tokenizer and fraction alone: neither on threads nor on how fast each of them is.
//  2. Memory is bounded, whatever the inputs: texts are read in pieces and cut only where no id changes; what cannot be cut is refused.
//  3. An id that does not fit is an error, and what was written is read again before it gets its name.
//  4. A folder has train.bin only when all of its files are whole: it is renamed last. A failed or interrupted run leaves nothing.
//  5. It never overwrites unasked, never follows links in folders, and leaves hidden files alone.
package prepare
