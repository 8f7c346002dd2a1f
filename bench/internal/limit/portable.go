package limit

// portableName is Name without a loop for the machine's vectors.
const portableName = "portable, below what the machine can do"

// portableFMA computes as much as a turn of vectors does, in scalars.
func portableFMA(turns int) float32 {
	var c [4]float32
	x := float32(0.5)
	for range turns * (Flops / (2 * len(c))) {
		c[0] += x * x
		c[1] += x * x
		c[2] += x * x
		c[3] += x * x
	}
	return c[0] + c[1] + c[2] + c[3]
}

func portableAdd(dst, src []float32) {
	src = src[:len(dst)]
	for i, v := range src {
		dst[i] += v
	}
}

func portableRead(src []float32) (sum float32) {
	for _, v := range src {
		sum += v
	}
	return sum
}
