// Package inproc is the group whose ranks are goroutines of one process. Nothing is sent: an all-gather reads each peer's piece
// once, straight into its place, and a reduce-scatter adds the peers' parts where they lie. What it adds to that is a rendezvous
// before, at which the ranks also compare what they are about to do, and one after, so that nobody overwrites what is being read.
//
//  1. A rank that left the first rendezvous always reaches the second, whatever happens to the group: so no buffer is freed while a
//     peer reads it.
//  2. All memory is ordered by the rendezvous alone: between two of them a rank writes only its own buffers.
//  3. On buffers that the CPU cannot address (a null device) the ranks meet and compare, and nothing moves.
package inproc
