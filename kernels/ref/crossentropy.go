package ref

import (
	"zeroshard/device"
	"zeroshard/kernels"
	"zeroshard/kernels/internal/f32"
)

// CrossEntropy: with m the row's maximum and e = exp(x−m), the loss is m + ln Σe − x(target) in float64, the gradient
// e·(scale/Σe), minus scale at the target.
func (*Kernels) CrossEntropy(_ device.Stream, c kernels.CrossEntropy) {
	x, targets, loss := c.Logits.Float32s(), c.Targets.Int32s(), c.Loss.Float64s()
	scale := float32(1)
	if s := c.Scale.Float32s(); len(s) > 0 {
		scale = s[0]
	}
	for i := range c.Rows {
		row, target := x[i*c.Vocab:(i+1)*c.Vocab], int(targets[i])
		if target < 0 {
			if c.Grad {
				clear(row)
			}
			continue
		}
		m := f32.Max(row)
		sum := f32.SumOf(c.Vocab, func(j int) float32 { return f32.Exp(row[j] - m) })
		loss[0] += float64(m) + f32.Log(float64(sum)) - float64(row[target])
		loss[1]++
		if c.Grad {
			factor := scale * (1 / sum)
			for j, v := range row {
				row[j] = float32(f32.Exp(v-m) * factor)
			}
			row[target] -= scale
		}
	}
}
