// Package file is the tier on disk: one file for each state of a rank, in a folder of its own.
//
// A slice is cut into blocks (1 MiB), the unit of transfer and of checksums. Blocks are counted from the slice's beginning, so no two slices
// share one and calls for different keys need no lock between them. Calls whose ends lie on blocks move memory to disk and back
// directly; the rest is read, changed and written through staging.
//
//  1. Room is taken by Reserve: a full disk is an error before training.
//  2. A checksum (CRC-32C) of each block is kept in memory and compared on each read. What was torn by a failed Put is not given out.
//  3. Nothing is kept in the page cache: I/O is direct where the file system takes it, else pages are dropped after each block.
//  4. Memory is Staging bytes, whatever the slices' sizes; calls in flight are bounded by Concurrency.
//  5. Close removes the folder. The folder of a run that was killed is removed by the next Reserve in the same place; that of a run
//     that lives never is.
//
// It keeps nothing for a later run (see checkpoint) and does not sync to disk.
package file
