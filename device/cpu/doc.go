// Package cpu is the device that every machine has: memory from the operating system, a goroutine for each stream, and a
// pool of threads that kernels split their outputs over. It computes nothing.
//
//  1. Memory is anonymous and mapped outside the Go heap, so the garbage collector neither scans nor moves it, and Free
//     gives it back to the operating system at once.
//  2. Handing work to a stream allocates nothing.
//  3. Close leaves no goroutine and no byte behind.
package cpu
