package modeltest

import (
	"math"
	"testing"

	"zeroshard/models"
	"zeroshard/prng"
)

// gradients compares gradients with finite differences of the training loss (so dropout is part of it: its masks follow from
// the key). For each parameter the loss is taken along random directions of signs. fp32 noise in the loss bounds what
// can be seen, so a difference counts when it passes both 2 % of the gradient's size along such a direction and the noise.
func (x suite) gradients(t testing.TB) {
	const directions = 3
	l := x.leaf()
	r, err := l.Train()
	if err != nil {
		t.Fatal(err)
	}
	key := prng.New(3)
	for name, g := range r.Grads {
		size := norm(g)
		for d := range directions {
			signs := directionOf(key.Named(name).Sub(uint64(d)), len(g))
			h := 0.02 / math.Sqrt(float64(max(len(g), 1))) // all elements move, by 0.02 together
			got, want := dot(g, signs), (l.lossAlong(t, name, signs, h)-l.lossAlong(t, name, signs, -h))/(2*h)
			noise := 2e-6 * max(1, math.Abs(r.Loss)) / h
			if !(math.Abs(got-want) <= 0.02*max(size, math.Abs(want))+noise) {
				t.Errorf("%s: derivative %.6g along direction %d, finite difference %.6g (step %.2g, noise %.2g)", name, got, d, want, h, noise)
			}
		}
	}
}

func (l *Leaf) lossAlong(t testing.TB, name string, signs []float32, h float64) float64 {
	moved := *l
	moved.Params = map[string][]float32{}
	for n, v := range l.Params {
		moved.Params[n] = v
	}
	v := make([]float32, len(signs))
	for i := range v {
		v[i] = l.Params[name][i] + float32(h*float64(signs[i]))
	}
	moved.Params[name] = v
	r := moved.begin(models.Train) // Train and not Eval: dropout is on
	if err := r.forward(); err != nil {
		t.Fatal(err)
	}
	return r.loss[0]
}

// directionOf is n random signs.
func directionOf(key prng.Key, n int) []float32 {
	v := make([]float32, n)
	key.FillUniform(v, 0)
	for i := range v {
		v[i] = float32(math.Copysign(1, float64(v[i]-0.5)))
	}
	return v
}

func dot(a, b []float32) (s float64) {
	for i := range a {
		s += float64(a[i]) * float64(b[i])
	}
	return s
}

func norm(a []float32) float64 { return math.Sqrt(dot(a, a)) }
