package hf_test

import (
	"fmt"
	"log"
	"os"
	"path/filepath"

	"zeroshard/checkpoint/safetensors"
	"zeroshard/models/gpt"
	"zeroshard/models/gpt/hf"
)

// A model goes out in 16 bits and comes back.
func Example() {
	parent, err := os.MkdirTemp("", "hf")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(parent)
	dir := filepath.Join(parent, "model")

	c := gpt.Config{Layers: 1, Heads: 2, Width: 4, Vocab: 8, Positions: 4, Bias: true}
	weights := func(name string, lo int, dst []float32) error {
		for i := range dst {
			dst[i] = float32(lo+i) / 8
		}
		return nil
	}
	if err := hf.Write(dir, hf.Export{Config: c, DType: safetensors.BF16}, weights); err != nil {
		log.Fatal(err)
	}

	f, err := hf.Open(dir)
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	row := make([]float32, 4)
	if err := f.Read("wte.weight", 4, row); err != nil {
		log.Fatal(err)
	}
	fmt.Println(f.Config().Vocab, "tokens; the second one is", row)
	// Output: 8 tokens; the second one is [0.5 0.625 0.75 0.875]
}
