// Package offload is the seam to tiers: where slices of parameters, gradients and optimizer state rest outside device memory.
// Backends: offload/host and offload/file. A backend's test is one line: tiertest.Run. It decides nothing: what is fetched and evicted
// when is in the plan (zero).
//
//  1. Room is taken once, before training.
//  2. What Get returns is what Put left, bit for bit, or an error that names the key: never a wrong byte.
//  3. Nothing is left after Close: no memory, no file.
package offload
