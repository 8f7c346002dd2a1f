package cpu

import (
	"zeroshard/device"
	"zeroshard/kernels"
	"zeroshard/kernels/internal/f32"
)

// lossRows is how many rows' losses wait for their turn to be added in order.
const lossRows = 512

// entropyJob splits CrossEntropy by rows, lossRows at a time.
type entropyJob struct {
	k       *Kernels
	x       []float32 // rows from first on
	targets []int32
	vocab   int
	scale   float32
	grad    bool
	losses  [lossRows]float64
}

// CrossEntropy: see kernels.CrossEntropy and package ref.
func (k *Kernels) CrossEntropy(_ device.Stream, c kernels.CrossEntropy) {
	j := &k.jobs.entropy
	x, targets, loss := c.Logits.Float32s()[:c.Rows*c.Vocab], c.Targets.Int32s()[:c.Rows], c.Loss.Float64s()
	j.vocab, j.scale, j.grad = c.Vocab, 1, c.Grad
	if c.Scale.Len > 0 {
		j.scale = c.Scale.Float32s()[0]
	}
	for lo := 0; lo < c.Rows; lo += lossRows {
		hi := min(lo+lossRows, c.Rows)
		j.x, j.targets = x[lo*c.Vocab:hi*c.Vocab], targets[lo:hi]
		k.run(rowParts(hi-lo, c.Vocab), j)
		for i, target := range j.targets {
			if target >= 0 {
				loss[0] += j.losses[i]
				loss[1]++
			}
		}
	}
}

func (j *entropyJob) Part(i int) {
	lo, hi := rowCut(i, len(j.targets), j.vocab)
	for r := lo; r < hi; r++ {
		row := j.x[r*j.vocab : (r+1)*j.vocab]
		if target := int(j.targets[r]); target >= 0 {
			j.losses[r] = j.row(row, target)
		} else if j.grad {
			clear(row)
		}
	}
}

func (j *entropyJob) row(x []float32, target int) float64 {
	path := j.k.path
	m, at := path.max(x), float64(x[target])
	var dst []float32
	if j.grad {
		dst = x
	}
	sum := path.expSum(dst, x, m)
	if j.grad {
		path.scale(x, j.scale*(1/sum))
		x[target] -= j.scale
	}
	return float64(m) + f32.Log(float64(sum)) - at
}

func expSum(dst, x []float32, m float32) float32 {
	var l [f32.Lanes]float32
	for i, v := range x {
		v = f32.Exp(v - m)
		if dst != nil {
			dst[i] = v
		}
		l[i%f32.Lanes] += v
	}
	return f32.Fold(&l)
}
