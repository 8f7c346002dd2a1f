package ref

import (
	"zeroshard/device"
	"zeroshard/kernels"
	"zeroshard/prng"
)

// Dropout keeps element i where its uniform number is at least p.
func (*Kernels) Dropout(_ device.Stream, dst, x kernels.Buffer, p float32, key prng.Key) {
	out, in := dst.Float32s(), x.Float32s()
	for i, v := range in {
		if p > 0 {
			v = float32(v * keep(key, uint64(i), p))
		}
		out[i] = v
	}
}

// keep is what dropout multiplies by: 1/(1−p) or 0.
func keep(key prng.Key, i uint64, p float32) float32 {
	if key.Uniform(i) >= p {
		return 1 / (1 - p)
	}
	return 0
}
