// Package collectives moves flat parameters and gradients between ranks. Two verbs do it all: all-gather copies every rank's
// piece to every rank, reduce-scatter adds every rank's part and leaves each rank its slice of the sum.
//
// It never decides what moves when (the plan does, in zero), and never chooses an order of additions: that is the tree over
// leaves of [Fold], which depends on no world size, transport or message offset. Backends: collectives/inproc. A backend's test is
// one line: grouptest.Run.
//
//  1. A call that differs between ranks is an error on all of them, not a hang.
//  2. After an abort, a close or a cancelled context nobody waits for the group any more.
//  3. When a call returns, with or without an error, no peer touches the caller's buffers.
//  4. A call allocates nothing.
package collectives
