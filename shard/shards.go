package shard

// The rule of shards, and the only place where a layout meets a world.
//
// With S the size of axis "shard", R of axis "replicate", and n grains in a flat, each index of the shard axis owns
//
//	L = R·⌈n/(S·R)⌉ grains: index i has grains [iL, (i+1)L) ∩ [0, n)
//
// and a full buffer has S·L. Shards at the end may be short or empty, and there may be several such. L is a multiple of R so that the
// fold across replicas cuts each shard into R equal parts; for R = 1 it is ⌈n/S⌉.
func shardGrains(n int, m Mesh) int {
	s, r := m.Size(Shards), m.Size(Replicate)
	return r * ceilDiv(ceilDiv(n, s), r) // = r·⌈n/(s·r)⌉
}

// ceilDiv is ⌈a/b⌉ for a ≥ 0, b > 0, without overflow.
func ceilDiv(a, b int) int {
	q := a / b
	if a%b != 0 {
		q++
	}
	return q
}

// ShardLen is the number of elements of one shard's buffer, padding included: the same for every index.
func (l *Layout) ShardLen(flat int, m Mesh) int {
	return shardGrains(l.Flats[flat].Len/Grain, m) * Grain
}

// FullLen is the number of elements of the full flat's buffer: Flat.Len and padding at its end, Size(Shards)·ShardLen.
func (l *Layout) FullLen(flat int, m Mesh) int {
	return m.Size(Shards) * l.ShardLen(flat, m)
}

// Shard returns the flat's elements that index (a coordinate on axis "shard") owns: at most ShardLen, possibly none. The shard's
// buffer starts at index·ShardLen of the full buffer.
func (l *Layout) Shard(flat, index int, m Mesh) Range {
	n, size := l.Flats[flat].Len, l.ShardLen(flat, m)
	return Range{min(index*size, n), min((index+1)*size, n)}
}
