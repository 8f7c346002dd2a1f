package safetensors_test

import (
	"bytes"
	"fmt"

	"zeroshard/checkpoint/safetensors"
)

func Example() {
	var b bytes.Buffer
	w, err := safetensors.NewWriter(&b, []safetensors.Tensor{
		{Name: "w", DType: safetensors.BF16, Shape: []int64{2, 2}},
		{Name: "b", DType: safetensors.F32, Shape: []int64{2}},
	}, map[string]string{"format": "pt"})
	if err != nil {
		fmt.Println(err)
		return
	}
	data, _ := safetensors.AppendFloat32s(nil, safetensors.BF16, []float32{1, 2, 3, 4})
	data, _ = safetensors.AppendFloat32s(data, safetensors.F32, []float32{5, 6})
	w.Write(data)
	if err := w.Close(); err != nil {
		fmt.Println(err)
		return
	}

	f, err := safetensors.NewReader(bytes.NewReader(b.Bytes()), int64(b.Len()), "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, t := range f.Tensors {
		v := make([]float32, t.Len())
		if err := f.Float32s(t, 0, v); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(t.Name, t.DType, t.Shape, v)
	}
	// Output:
	// w BF16 [2 2] [1 2 3 4]
	// b F32 [2] [5 6]
}
