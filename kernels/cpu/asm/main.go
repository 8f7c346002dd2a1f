// Command asm writes the inner loops of kernels/cpu in Go assembly, for each instruction set. It is a module of its own, so that its
// dependency does not reach those who only build. Run it by go generate in kernels/cpu.
//
// Loops take slices whose lengths are multiples of what one turn does (the Go side rounds down and does the tail with
// the portable loop, which gives the same bits), so there are no tails here. Turns are the same for all instruction sets. No operation is
// fused, outside the tiles, and where the product is exact.
package main

import (
	"github.com/mmcloughlin/avo/build"
)

func main() {
	for _, set := range sets {
		use(set)
		tiles()
		packs()
		vectors()
		rows()
		softmax()
		scoreBack()
		keep()
		norms()
		optimizers()
		casts()
	}
	build.Generate()
}
