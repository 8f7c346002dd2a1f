package bench

import (
	"fmt"

	"zeroshard/device"
	"zeroshard/internal/exact"
	"zeroshard/kernels"
)

// flat is the elements of the flat parameter that the engine's vector kernels are measured on: no cache holds it.
const flat = 32 << 20

// flats lists what the engine does to flat parameters.
func flats() []measurement {
	shape := fmt.Sprintf("%d Mi elements", flat>>20)
	add := streaming{"add (fold)", shape, []int{flat, flat}, 12 * flat, func(b kernels.Backend, x []device.Buffer) {
		b.Add(nil, x[0], x[0], x[1])
	}}
	sum := streaming{"sum to a third", shape, []int{flat, flat, flat}, 12 * flat, func(b kernels.Backend, x []device.Buffer) {
		b.Add(nil, x[0], x[1], x[2])
	}}
	return []measurement{adamW(shape), sumSquares(shape), add.measurement(), sum.measurement(),
		cast(shape, device.F32, device.BF16), cast(shape, device.BF16, device.F32),
		cast(shape, device.F32, device.F16), cast(shape, device.F16, device.F32)}
}

// adamW reads parameters, gradients and two moments, and writes all but the gradients: 28 bytes an element.
func adamW(shape string) measurement {
	return measurement{name: "adamw", shape: shape, amount: 28 * flat, traffic: 16 * flat,
		prepare: func(a *arena, b kernels.Backend) (work, error) {
			buf, err := a.floats(flat, flat, flat, flat, 2)
			if err != nil {
				return nil, err
			}
			v, control := buf[3].Float32s(), buf[4].Float32s()
			for i := range v {
				v[i] = 0.25 // squares are not negative
			}
			control[0], control[1] = 1, 0
			c := kernels.AdamW{P: buf[0], G: buf[1], M: buf[2], V: buf[3], Control: buf[4],
				LR: 1e-4, Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, Decay: 0.1, C1: 0.9, C2: 0.95}
			return func() error { b.AdamW(nil, c); return nil }, nil
		}}
}

func sumSquares(shape string) measurement {
	return measurement{name: "sum of squares (norm)", shape: shape, amount: 4 * flat, traffic: 4 * flat,
		prepare: func(a *arena, b kernels.Backend) (work, error) {
			buf, err := a.floats(flat)
			if err != nil {
				return nil, err
			}
			acc, err := a.buffer(exact.Words, device.U64)
			if err != nil {
				return nil, err
			}
			return func() error { b.SumSquares(nil, acc, buf[0], 1); return nil }, nil
		}}
}

func cast(shape string, from, to device.DType) measurement {
	bytes := (from.Size() + to.Size()) * flat
	return measurement{name: fmt.Sprintf("cast %v to %v", from, to), shape: shape, amount: float64(bytes), traffic: bytes,
		prepare: func(a *arena, b kernels.Backend) (work, error) {
			src, err := a.buffer(flat, from)
			if err != nil {
				return nil, err
			}
			dst, err := a.buffer(flat, to)
			if err != nil {
				return nil, err
			}
			if from == device.F32 {
				x := src.Float32s()
				for i := range x {
					x[i] = float32(i%251+1) / 252
				}
			} else { // memory that nobody wrote is one page of zeros
				raw := src.Raw()
				for i := 0; i < len(raw); i += 2 {
					raw[i], raw[i+1] = byte(i/2), 0x3c
				}
			}
			return func() error { b.Cast(nil, dst, src); return nil }, nil
		}}
}
