package zero

import (
	"fmt"

	"zeroshard/collectives"
	"zeroshard/device"
	"zeroshard/memory"
	"zeroshard/shard"
)

// Lane is a stream of a rank. Host is bookkeeping by the executor.
type Lane uint8

// The lanes. IO is used by tiers.
const (
	Compute Lane = iota
	Comm
	Copy
	IO
	Host
	lanes
)

func (l Lane) String() string {
	return [...]string{"compute", "comm", "copy", "io", "host"}[l]
}

// Verb is what an op does.
type Verb uint8

// The verbs, in about the order in which a step uses them.
const (
	Feed      Verb = iota // a leaf's tokens to the device
	Gather                // all-gather of a flat: parameters before use, gradients or updated parameters at the end
	Reshard               // a gathered flat is dropped
	Forward               // a unit
	Recompute             // a unit's forward again, for its saved values only
	LossGrad              // the last unit: loss, input gradient and weight gradient in one pass
	Backward              // a unit
	Clear                 // a gradient's gaps (or all of it) to zero
	Merge                 // gradients of two neighbouring leaves added, in the tree's order
	Cast                  // a leaf's gradient rounded to the dtype of reduction
	Reduce                // reduce-scatter of a window's gradients, folded into the carry
	Square                // sum of squares of this rank's gradient shards
	Norm                  // scalars of all ranks: loss, tokens, norm; the clip factor from them
	Update                // the optimizer on this rank's slice
	Losses                // scalars of all ranks: loss and tokens
	Report                // results to the host
	Fetch                 // from a tier to the device
	Evict                 // from the device to a tier
	verbs
)

var verbNames = [verbs]string{"feed", "gather", "reshard", "forward", "recompute", "loss", "backward", "clear", "merge",
	"cast", "reduce-scatter", "square", "norm", "update", "losses", "report", "fetch", "evict"}

func (v Verb) String() string { return verbNames[v] }

// Buf is a buffer of a plan: what for, how long, where. The same on every rank.
type Buf struct {
	Name     string
	Kind     memory.Kind
	DType    device.DType
	Len      int    // elements
	Resident bool   // lives as long as the engine: in the resident arena, or in Tier
	Flat     int    // of a resident one: whose state it is
	State    string // of a resident one: "parameter", "gradient", "master", "m", …
	Tier     string // of a resident one: where it rests; "" = device memory
	Keep     bool   // a transient one that lies still: what a run writes, the next run of a plan with the same caches reads
	Off      int64  // place: bytes from the start of its arena
	First    int    // lifetime of a transient one: first and last op that use it
	Last     int
}

// Bytes is the buffer's size.
func (b *Buf) Bytes() int64 { return int64(b.Len) * int64(b.DType.Size()) }

// Cut says which part of a buffer an op touches: the part that depends on the rank.
type Cut uint8

// The cuts. Mine is this rank's slice on axis shard of a full buffer; Sub is this replica's slice of the shard.
const (
	Whole Cut = iota
	Mine
	Sub
)

// Ref is a buffer of the plan, or this rank's part of it, or (Part not zero) elements Part of that.
type Ref struct {
	Buf  int
	Cut  Cut
	Part shard.Range
}

// none is the absent buffer.
const none = -1

// Op is one operation. Fields without meaning for the verb are none (-1) or empty.
type Op struct {
	Verb  Verb
	Lane  Lane
	Axis  shard.Axis  // of a collective
	Unit  int         // index into Model.Units
	Flat  int         // index into Layout.Flats
	Win   int         // window
	Slot  int         // leaf within the window
	Depth int         // Merge: source position on the stack
	Part  shard.Range // Update: the sub-group, elements of the shard; zero for all of it
	Note  string      // what the printed line adds
	Args  Args
	After []int // ops of other lanes that must be done before
}

// Args are an op's buffers.
type Args struct {
	In, Out, DIn, DOut, Saved, Work int   // of a unit
	Tokens, Targets, Scalars        int   // of a leaf; scalars of the step
	Spans, Cache                    int   // in mode Decode: of a leaf, of a unit
	P, G                            []int // by flat of the unit: values, gradients
	Add                             bool  // gradients are added to what G holds
	Src, Dst                        Ref   // of Gather, Cast, Merge, Report, Fetch, Evict; Src is the gradient of Square and Update
	Outs, Ins                       []Ref // of Reduce (Src is its source) and Update (Ins: master and states, updated in place)
	Fold                            *collectives.Fold
}

func noArgs() Args {
	n := Ref{Buf: none}
	return Args{In: none, Out: none, DIn: none, DOut: none, Saved: none, Work: none, Tokens: none, Targets: none, Scalars: none, Spans: none, Cache: none, Src: n, Dst: n}
}

// newOp returns an op without operands.
func newOp(v Verb, l Lane) Op {
	return Op{Verb: v, Lane: l, Unit: none, Flat: none, Win: none, Slot: none, Args: noArgs()}
}

// uses calls f for every buffer that the op reads or writes: the one source of lifetimes and waits.
func (o *Op) uses(f func(buf int, write bool)) {
	a := &o.Args
	use := func(b int, write bool) {
		if b != none {
			f(b, write)
		}
	}
	backward := o.Verb == Backward || o.Verb == LossGrad
	use(a.In, false)
	use(a.Out, true)
	use(a.DIn, true)
	use(a.DOut, false)
	use(a.Saved, o.Verb != Backward)
	use(a.Work, true)
	use(a.Tokens, o.Verb == Feed)
	use(a.Targets, o.Verb == Feed)
	use(a.Scalars, o.Verb != Report)
	use(a.Spans, o.Verb == Feed)
	use(a.Cache, true)
	for _, b := range a.P {
		use(b, false)
	}
	for _, b := range a.G {
		use(b, backward || o.Verb == Clear)
	}
	use(a.Src.Buf, false)
	use(a.Dst.Buf, true)
	for _, r := range a.Ins {
		use(r.Buf, o.Verb == Update) // the optimizer updates in place
	}
	for _, r := range a.Outs {
		use(r.Buf, true)
	}
}

// compute reports whether the op runs a unit.
func (o *Op) compute() bool {
	return o.Verb == Forward || o.Verb == Recompute || o.Verb == LossGrad || o.Verb == Backward
}

// label is the op's line without its number and waits.
func (o *Op) label(p *Plan) string {
	s := fmt.Sprintf("%-7s %-14s", o.Lane, o.Verb)
	if o.Unit != none {
		s += " " + p.model.units[o.Unit].Name()
	}
	if o.Flat != none {
		s += " " + p.model.flats[o.Flat].Name
	}
	if o.Slot != none {
		s += fmt.Sprintf(" mb%d", o.Win*p.Windows.Size+o.Slot)
	} else if o.Win != none {
		s += fmt.Sprintf(" window%d", o.Win)
	}
	if o.Axis != shard.None && o.Axis != shard.Shards {
		s += " over " + string(o.Axis)
	}
	if o.Note != "" {
		s += " " + o.Note
	}
	return s
}
