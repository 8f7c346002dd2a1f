// Package data reads token files and cuts training and validation windows from them.
//
// It knows three kinds of file:
//
//   - nanoGPT's: a name that ends in ".bin", raw little-endian uint16 ids, no header;
//   - llm.c's: 256 int32 of header (magic, version, count), then the ids: magic 20240520, version 1, uint16, or magic 20240801,
//     version 7, uint32;
//   - any other: plain text, each byte a token (vocabulary 256).
//
// It never tokenizes text, never downloads, and never draws anything from the rank or the world size.
//
//  1. Open reads a file once from end to end, so an id outside the vocabulary is an error before training, with its place.
//  2. Memory is bounded: files are read in windows, whatever their size.
//  3. A leaf's windows are a pure function of (seed, step, leaf): the same for every world, stage and resume.
//  4. What cannot be read as asked is an error that wraps [ErrCorrupt] or the operating system's; what does not fit the settings
//     (a text in a vocabulary under 256) wraps [ErrMismatch].
package data
