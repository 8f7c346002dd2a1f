// Package safetensors reads and writes the safetensors format: the length of a header in 8 bytes, little-endian; the header, a JSON
// object that gives each tensor's element type, shape and place; then the tensors' bytes, and nothing else.
//
//	<8 bytes: n> {"__metadata__":{"k":"v"},"w":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}}<spaces> <data>
//
// It knows nothing of models or of the names in a file.
//
//  1. Reading is strict: a file is refused with the reason and the byte where it breaks any rule of the format, also those that other
//     readers let pass (a name twice, an unknown field, a header that does not begin with '{').
//  2. Parse never panics and takes memory in proportion to the header alone, whatever the header claims.
//  3. What is written depends on the arguments alone, is complete before any data is known, and is read back as it was given:
//     names, types, shapes, order and metadata.
//  4. Data is streamed: neither side holds a tensor.
//  5. Widening to fp32 is exact or an error; narrowing rounds to nearest, ties to even, and never makes a finite number infinite.
package safetensors
