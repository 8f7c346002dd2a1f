// Package zeroshard trains models larger than one device's memory. Each rank keeps only its slice of parameters, gradients and
// optimizer state (ZeRO stages 0 to 3), gathers whole layers just in time, frees them after use and reduce-scatters gradients.
//
// This package is the facade: Local makes the ranks of one process on the default backends, Plan says what a run will do and
// need, before it does. The parts are in their own packages; zero has the compiler and the engine.
//
//  1. Stage, world size, prefetch, recompute, threads, meshes and offload never change the result: not one bit.
//  2. The planned peak of device memory is the used peak.
//  3. A step is a printed plan.
package zeroshard
