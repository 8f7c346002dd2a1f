package gpt

import (
	"fmt"
	"math"
)

// oracle is the model once more: float64, forward alone, no units, no kernels, one token sequence at a time.
type oracle struct {
	cfg    Config
	params map[string][]float64
	head   []float64 // the table of the projection: wte unless a test unties it
}

func newOracle(cfg Config, params map[string][]float32) *oracle {
	o := &oracle{cfg: cfg, params: map[string][]float64{}}
	for name, v := range params {
		w := make([]float64, len(v))
		for i := range v {
			w[i] = float64(v[i])
		}
		o.params[name] = w
	}
	o.head = o.params["wte.weight"]
	return o
}

// loss is the sum over all sequences and valid targets.
func (o *oracle) loss(tokens, targets []int32, seq int) (sum float64) {
	for lo := 0; lo < len(tokens); lo += seq {
		sum += o.sequence(tokens[lo:lo+seq], targets[lo:lo+seq])
	}
	return sum
}

func (o *oracle) sequence(tokens, targets []int32) (sum float64) {
	d := o.cfg.Width
	x := make([][]float64, len(tokens))
	for t, token := range tokens {
		x[t] = make([]float64, d)
		for i := range d {
			x[t][i] = o.params["wte.weight"][int(token)*d+i] + o.params["wpe.weight"][t*d+i]
		}
	}
	for i := range o.cfg.Layers {
		o.block(fmt.Sprintf("h.%d.", i), x)
	}
	for t, target := range targets {
		if target < 0 {
			continue
		}
		y, z, picked := o.norm("ln_f", x[t]), 0.0, 0.0
		for v := range o.cfg.Vocab {
			logit := 0.0
			for i := range d {
				logit += y[i] * o.head[v*d+i]
			}
			z += math.Exp(logit)
			if v == int(target) {
				picked = logit
			}
		}
		sum += math.Log(z) - picked
	}
	return sum
}

func (o *oracle) block(p string, x [][]float64) {
	qkv := make([][]float64, len(x))
	for t := range x {
		qkv[t] = o.linear(p+"attn.c_attn", o.norm(p+"ln_1", x[t]))
	}
	att := o.attention(qkv)
	for t := range x {
		add(x[t], o.linear(p+"attn.c_proj", att[t]))
		h := o.linear(p+"mlp.c_fc", o.norm(p+"ln_2", x[t]))
		for i, v := range h {
			h[i] = v / 2 * (1 + math.Tanh(math.Sqrt(2/math.Pi)*(v+0.044715*v*v*v)))
		}
		add(x[t], o.linear(p+"mlp.c_proj", h))
	}
}

func (o *oracle) attention(qkv [][]float64) [][]float64 {
	d, size := o.cfg.Width, o.cfg.Width/o.cfg.Heads
	out := make([][]float64, len(qkv))
	for t := range qkv {
		out[t] = make([]float64, d)
		for lo := 0; lo < d; lo += size {
			weights, sum := make([]float64, t+1), 0.0
			for s := range weights {
				dot := 0.0
				for i := lo; i < lo+size; i++ {
					dot += qkv[t][i] * qkv[s][d+i]
				}
				weights[s] = math.Exp(dot / math.Sqrt(float64(size)))
				sum += weights[s]
			}
			for s, w := range weights {
				for i := lo; i < lo+size; i++ {
					out[t][i] += w / sum * qkv[s][2*d+i]
				}
			}
		}
	}
	return out
}

func (o *oracle) norm(p string, x []float64) []float64 {
	mean, variance := 0.0, 0.0
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		variance += (v - mean) * (v - mean) / float64(len(x))
	}
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = (v-mean)/math.Sqrt(variance+float64(o.cfg.eps()))*o.params[p+".weight"][i] + o.bias(p, i)
	}
	return y
}

// linear: y = x·W + b, W input-major.
func (o *oracle) linear(p string, x []float64) []float64 {
	w := o.params[p+".weight"]
	y := make([]float64, len(w)/len(x))
	for j := range y {
		y[j] = o.bias(p, j)
		for i, v := range x {
			y[j] += v * w[i*len(y)+j]
		}
	}
	return y
}

func (o *oracle) bias(p string, i int) float64 {
	if !o.cfg.Bias {
		return 0
	}
	return o.params[p+".bias"][i]
}

func add(x, y []float64) {
	for i, v := range y {
		x[i] += v
	}
}

// derivative is the central difference of f at *x.
func derivative(x *float64, f func() float64) float64 {
	const h = 1e-5
	at := *x
	defer func() { *x = at }()
	*x = at + h
	up := f()
	*x = at - h
	return (up - f()) / (2 * h)
}
