// Package limit has the loops that show what a machine can do at most: multiply-adds from registers, a read, a copy, and x += y. They do
// nothing useful, so nothing useful can be faster for long: package bench measures them beside the work that it judges.
//
//  1. The loops share no code with the kernels that they are held against.
//  2. Where there is no loop for the machine's vector unit, plain Go runs, and Name says so: what it reaches is no limit.
//  3. Multiply-adds have an AVX-512 loop. Memory has none: vectors of 256 bits keep up with it.
package limit
