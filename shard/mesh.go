package shard

// Axis names a direction of the mesh: "shard", "replicate". World is the whole mesh as one axis.
type Axis string

// The axes that the engine knows.
const (
	None      Axis = ""
	Shards    Axis = "shard"
	Replicate Axis = "replicate"
	World     Axis = "world"
)
