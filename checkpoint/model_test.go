package checkpoint_test

import (
	"math"
	"testing"

	"zeroshard/checkpoint"
	"zeroshard/shard"
)

// toy is the state of a run: each element is a function of (step, state, parameter, index), so a wrong byte shows.
type toy struct {
	params []checkpoint.Param
	states []string
}

var small = toy{
	params: []checkpoint.Param{{Name: "a", Shape: []int{3, 5}}, {Name: "b/c", Shape: []int{700}, NoDecay: true}, {Name: "none", Shape: []int{0, 4}},
		{Name: "scalar", Shape: []int{}}, {Name: "ice", Shape: []int{130}, Frozen: true}},
	states: []string{"m", "v"},
}

func value(step int, state, param string, i int) float32 {
	h := uint32(2166136261) ^ uint32(step)<<16 ^ uint32(i)
	for _, c := range state + "/" + param {
		h = (h ^ uint32(c)) * 16777619
	}
	return math.Float32frombits(h&^0x7f800000 | 0x3f000000)
}

func (t toy) manifest(step int) checkpoint.Manifest {
	return checkpoint.Manifest{Position: checkpoint.Position{Step: step, Updates: step, Tokens: int64(step) * 64, Seed: 1<<64 - 1}, Model: []byte(`{"kind":"toy"}`), Settings: []byte(`{"lr":0.1}`),
		Params: t.params, States: t.states, World: checkpoint.World{Ranks: 1}}
}

func (t toy) statesOf(p checkpoint.Param) []string {
	if p.Frozen {
		return []string{checkpoint.Weights}
	}
	return append([]string{checkpoint.Weights}, t.states...)
}

// sources divides the state among ranks, each parameter by itself, so parts begin anywhere.
func (t toy) sources(step, world int) []checkpoint.Source {
	out := make([]checkpoint.Source, world)
	for r := range world {
		s := &toySource{step: step}
		for _, p := range t.params {
			for _, state := range t.statesOf(p) {
				n := p.Len()
				part := shard.Range{Lo: n * r / world, Hi: n * (r + 1) / world}
				if part.Len() > 0 {
					s.pieces = append(s.pieces, checkpoint.Piece{Param: p.Name, State: state, From: part.Lo, Len: part.Len(), Streamed: r%2 == 1 && state == "v"})
				}
			}
		}
		out[r] = s
	}
	return out
}

type toySource struct {
	step   int
	pieces []checkpoint.Piece
}

func (s *toySource) Pieces() []checkpoint.Piece { return append([]checkpoint.Piece(nil), s.pieces...) }

func (s *toySource) Read(p checkpoint.Piece, lo int, dst []float32) error {
	for i := range dst {
		dst[i] = value(s.step, p.State, p.Param, p.From+lo+i)
	}
	return nil
}

// check reads all of a step, whole and in odd parts.
func (t toy) check(tb testing.TB, s *checkpoint.Saved) {
	tb.Helper()
	for _, p := range t.params {
		for _, state := range t.statesOf(p) {
			for _, chunk := range []int{max(p.Len(), 1), 97} {
				for lo := 0; lo < p.Len(); lo += chunk {
					got := make([]float32, min(chunk, p.Len()-lo))
					if err := s.Read(p.Name, state, lo, got); err != nil {
						tb.Fatalf("%s of %s: %v", state, p.Name, err)
					}
					for i, v := range got {
						if want := value(s.Manifest.Step, state, p.Name, lo+i); v != want {
							tb.Fatalf("step %d: %s of %s: element %d is %v, saved was %v", s.Manifest.Step, state, p.Name, lo+i, v, want)
						}
					}
				}
			}
		}
	}
}
