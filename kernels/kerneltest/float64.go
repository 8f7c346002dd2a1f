package kerneltest

import (
	"math"

	"zeroshard/kernels"
	"zeroshard/prng"
)

// Forward kernels in float64, written from their formulas alone. Shapes as in package kernels.

func matmul64(m kernels.MatMul, a, b, bias []float64) []float64 {
	at := func(i, p int) float64 {
		if m.TransA {
			return a[p*m.M+i]
		}
		return a[i*m.K+p]
	}
	bt := func(p, j int) float64 {
		if m.TransB {
			return b[j*m.K+p]
		}
		return b[p*m.N+j]
	}
	c := make([]float64, m.M*m.N)
	for i := range m.M {
		for j := range m.N {
			s := bias[j]
			for p := range m.K {
				s += at(i, p) * bt(p, j)
			}
			c[i*m.N+j] = s
		}
	}
	return c
}

func embed64(e kernels.Embed, tokens []int32, table, pos []float64) []float64 {
	out := make([]float64, e.Batch*e.Seq*e.Dim)
	for i := range out {
		out[i] = table[int(tokens[i/e.Dim])*e.Dim+i%e.Dim] + pos[i%(e.Seq*e.Dim)]
	}
	return out
}

func layernorm64(rows, dim int, eps float64, x, w, b []float64) []float64 {
	y := make([]float64, rows*dim)
	for i := range rows {
		r := x[i*dim : (i+1)*dim]
		mean, variance := 0.0, 0.0
		for _, v := range r {
			mean += v / float64(dim)
		}
		for _, v := range r {
			variance += (v - mean) * (v - mean) / float64(dim)
		}
		for j, v := range r {
			y[i*dim+j] = (v-mean)/math.Sqrt(variance+eps)*w[j] + b[j]
		}
	}
	return y
}

func attention64(a kernels.Attention, qkv []float64) []float64 {
	width := a.Heads * a.Dim
	out := make([]float64, a.Batch*a.Seq*width)
	at := func(b, t, part, h int) []float64 { return qkv[((b*a.Seq+t)*3+part)*width+h*a.Dim:][:a.Dim] }
	for b := range a.Batch {
		for h := range a.Heads {
			for t := range a.Seq {
				p, sum := make([]float64, t+1), 0.0
				for j := range p {
					for d, q := range at(b, t, 0, h) {
						p[j] += q * at(b, j, 1, h)[d] / math.Sqrt(float64(a.Dim))
					}
					p[j] = math.Exp(p[j])
					sum += p[j]
				}
				o := out[(b*a.Seq+t)*width+h*a.Dim:]
				for j := range p {
					i := uint64((b*a.Heads+h)*a.Seq+t)*uint64(a.Seq) + uint64(j)
					f := keep64(a.Key, i, a.Drop)
					for d, v := range at(b, j, 2, h) {
						o[d] += p[j] / sum * f * v
					}
				}
			}
		}
	}
	return out
}

func keep64(key prng.Key, i uint64, p float32) float64 {
	if key.Uniform(i) < p {
		return 0
	}
	return 1 / (1 - float64(p))
}

func gelu64(x []float64) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = v / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(v+0.044715*v*v*v)))
	}
	return y
}

// crossEntropy64 is the loss sum as one number.
func crossEntropy64(rows, vocab int, x []float64, targets []int32) []float64 {
	loss := 0.0
	for i := range rows {
		if targets[i] < 0 {
			continue
		}
		sum := 0.0
		for _, v := range x[i*vocab : (i+1)*vocab] {
			sum += math.Exp(v)
		}
		loss += math.Log(sum) - x[i*vocab+int(targets[i])]
	}
	return []float64{loss}
}
