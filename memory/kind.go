package memory

import "fmt"

// Kind says what bytes are for.
type Kind uint8

// The kinds, in the order in which tables show them.
const (
	Parameter     Kind = iota // parameters at rest: full ones, or this rank's shard
	Gathered                  // full flat parameters, gathered for use
	Gradient                  // full gradients
	GradientShard             // reduced gradients of this rank's shard
	Optimizer                 // moments, and master weights that are not the parameters themselves
	Activation                // outputs and saved values of units
	Cache                     // keys and values of texts that a model goes on with
	Workspace                 // scratch of units and kernels
	Staging                   // carries of the fold, copies between tiers
	Communication             // scalars, and staging that a transport asks for
	Kinds                     // the number of kinds
)

var kindNames = [Kinds]string{"parameter", "gathered", "gradient", "gradient_shard", "optimizer", "activation", "cache", "workspace", "staging", "communication"}

func (k Kind) String() string {
	if k >= Kinds {
		return fmt.Sprintf("Kind(%d)", uint8(k))
	}
	return kindNames[k]
}

// ByKind counts bytes.
type ByKind [Kinds]int64

// Sum is the bytes of all kinds.
func (b ByKind) Sum() (n int64) {
	for _, v := range b {
		n += v
	}
	return n
}
