package cpu

import "zeroshard/kernels/internal/f32"

func gelu(y, x []float32) {
	x = x[:len(y)]
	for i, v := range x {
		y[i] = f32.GELU(v)
	}
}

func geluGrad(dx, y, dy, x []float32) {
	dy, x = dy[:len(dx)], x[:len(dx)]
	for i, v := range x {
		value, slope := f32.GELUGrad(v)
		dx[i] = float32(dy[i] * slope)
		if y != nil {
			y[i] = value
		}
	}
}
