package main

import (
	. "github.com/mmcloughlin/avo/build"
)

// norms writes the loops of layernorm.
func norms() {
	var mean, rstd vec
	reduceWith("normSquares", "func(lanes *[32]float32, x []float32, mean float32)", []string{"x"}, func() { mean = broadcast("mean") },
		func(acc vec, at addr, e int) {
			v := vector()
			VMOVUPS(at("x", e), v)
			VSUBPS(mean, v, v)
			VMULPS(v, v, v)
			VADDPS(v, acc, acc)
		})
	for _, bias := range []bool{true, false} {
		name, sig, ptrs := "normScale", "func(y, x, w []float32, c *float32)", []string{"y", "x", "w"}
		if bias {
			name, sig, ptrs = "normApply", "func(y, x, w, b []float32, c *float32)", []string{"y", "x", "w", "b"}
		}
		text(name, sig)
		c := scalars(2)
		mean, rstd = c[0], c[1]
		each("y", ptrs, func(at addr, e int) {
			v := hat(at, e, mean, rstd)
			VMULPS(at("w", e), v, v)
			if bias {
				VADDPS(at("b", e), v, v)
			}
			VMOVUPS(v, at("y", e))
		})
		ret()
	}
	normSums()
	normBack()
	for _, bias := range []bool{true, false} {
		name, sig, ptrs := "normWeight", "func(dw, dy, x []float32, c *float32)", []string{"dw", "dy", "x"}
		if bias {
			name, sig, ptrs = "normParams", "func(dw, db, dy, x []float32, c *float32)", []string{"dw", "db", "dy", "x"}
		}
		text(name, sig)
		c := scalars(2)
		mean, rstd = c[0], c[1]
		each("dw", ptrs, func(at addr, e int) {
			g, v := vector(), hat(at, e, mean, rstd)
			VMOVUPS(at("dy", e), g)
			VMULPS(g, v, v)
			VADDPS(at("dw", e), v, v)
			VMOVUPS(v, at("dw", e))
			if bias {
				VADDPS(at("db", e), g, g)
				VMOVUPS(g, at("db", e))
			}
		})
		ret()
	}
}

// hat is x̂ = (x−mean)·rstd.
func hat(at addr, e int, mean, rstd vec) vec {
	v := vector()
	VMOVUPS(at("x", e), v)
	VSUBPS(mean, v, v)
	VMULPS(rstd, v, v)
	return v
}

// normSums adds dy·w to the first lanes and dy·w·x̂ to the second.
func normSums() {
	text("normSums", "func(lanes *[64]float32, dy, x, w []float32, c *float32)")
	c := scalars(2)
	mean, rstd := c[0], c[1]
	l := Load(Param("lanes"), GP64())
	g, gx := loadLanes(l, 0), loadLanes(l, lanes)
	loop(lanes, "x", []string{"dy", "x", "w"}, func(at addr) {
		for i := range g {
			v := vector()
			VMOVUPS(at("dy", i*width), v)
			VMULPS(at("w", i*width), v, v)
			VADDPS(v, g[i], g[i])
			VMULPS(hat(at, i*width, mean, rstd), v, v)
			VADDPS(v, gx[i], gx[i])
		}
	})
	storeLanes(g, l, 0)
	storeLanes(gx, l, lanes)
	ret()
}

// normBack is dx = rstd·(dy·w − meanG − x̂·meanGX), or added to dx.
func normBack() {
	for _, add := range []bool{false, true} {
		name := "normBack"
		if add {
			name = "normBackAdd"
		}
		text(name, "func(dx, dy, x, w []float32, c *float32)")
		c := scalars(4)
		mean, rstd, meanG, meanGX := c[0], c[1], c[2], c[3]
		each("dx", []string{"dx", "dy", "x", "w"}, func(at addr, e int) {
			h, v := hat(at, e, mean, rstd), vector()
			VMULPS(meanGX, h, h)
			VMOVUPS(at("dy", e), v)
			VMULPS(at("w", e), v, v)
			VSUBPS(meanG, v, v)
			VSUBPS(h, v, v)
			VMULPS(rstd, v, v)
			if add {
				VADDPS(at("dx", e), v, v)
			}
			VMOVUPS(v, at("dx", e))
		})
		ret()
	}
}
