package cpu

import "golang.org/x/sys/cpu"

// paths are those that this machine can run, the best first.
func paths() (p []*path) {
	x := &cpu.X86
	vectors := x.HasAVX2 && x.HasFMA && x.HasF16C
	if vectors && x.HasBMI2 && x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL {
		p = append(p, vectorPath("avx512", avx512))
	}
	if vectors {
		p = append(p, vectorPath("avx2", avx2))
	}
	return append(p, portable())
}

// vectorPath is the loops of an instruction set. A loop takes whole turns of vectors; the tail runs in the portable one, which gives the
// same bits.
func vectorPath(name string, s set) *path {
	g := s.tiles()
	return &path{
		name:     name,
		multiply: g.multiply,
		pack:     g.pack, scores: g.scores, lower: g.lower, upper: g.upper,
		softmax: s.softmax, scoreBack: s.scoreBack, keep: s.keep, dropout: s.dropout,
		add: s.add, addStream: s.addStream, addRows: s.addRows, scale: s.scale, mul: s.mul,
		gelu: s.gelu, geluGrad: s.geluGrad,
		adamw: s.adamw, sgd: s.sgd,
		squares: s.squares,
		sum:     s.sum, dot: s.dot, max: s.max, expSum: s.expSum,
		widen: s.widen, narrow: s.narrow,
		norm: normPath{squares: s.normSquares, apply: s.normApply, sums: s.normSums, back: s.normBack, params: s.normParams},
	}
}
