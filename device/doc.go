// Package device is the seam to hardware: memory, streams, events, copies. It computes nothing (see kernels) and
// decides nothing (see zero). Backends: device/cpu, device/null. A backend's test is one line: devicetest.Run.
//
//  1. Memory is zeroed when given out and lives outside the Go heap.
//  2. A stream runs its tasks in order; streams meet only in events.
//  3. The first error of a stream sticks and reaches every stream that waits for it.
package device
