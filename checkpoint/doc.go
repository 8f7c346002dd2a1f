// Package checkpoint keeps the state of a run in folders that any world can load.
//
//  1. A step exists as a whole or not at all, whenever the machine stops: it is written beside, flushed, and renamed.
//  2. What is read is what was saved, or an error that names the file and tensor: every block that is touched is checked.
//  3. Parts are named by parameter and element. Nothing in a file depends on who will load it.
//  4. Memory is bounded: saving takes one snapshot at most, loading a few blocks.
//  5. The files are safetensors, readable without this program. Nothing is ever executed.
//
// docs/format/checkpoint.md describes the files, docs/design/0003-checkpoints.md the reasons.
package checkpoint
