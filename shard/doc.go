// Package shard is the integer arithmetic of layouts: where parameters lie in flat parameters, which elements of a flat a rank
// owns, which ranks form a group, which leaves of a batch a rank computes and when. No bytes, no dtypes, no I/O.
//
//  1. A layout does not depend on the world: [Layout.Shard] is the only place where layout and mesh meet.
//  2. Offsets, padding and shards count in grains of 128 elements.
//  3. Every element of a flat is owned by exactly one index of the shard axis; a shard may be short or empty.
//  4. In every window the leaves of a rank are one node of the tree over leaves.
//  5. Values are pure functions of their arguments; nothing here changes after it was made.
package shard
