package perceptron_test

import (
	"testing"

	"zeroshard/examples/mlp/perceptron"
	"zeroshard/kernels/ref"
	"zeroshard/models"
	"zeroshard/models/modeltest"
)

func TestModel(t *testing.T) {
	m := perceptron.New(perceptron.Config{Vocab: 11, Context: 3, Width: 4, Hidden: 5})
	for _, c := range []struct {
		name  string
		shape models.Shape
	}{
		{"sequences longer than the context", models.Shape{Batch: 2, Seq: 5}},
		{"as long", models.Shape{Batch: 2, Seq: 3}},
		{"shorter", models.Shape{Batch: 3, Seq: 2}},
	} {
		t.Run(c.name, func(t *testing.T) { modeltest.Run(t, ref.New(), m, c.shape, 11) })
	}
}
