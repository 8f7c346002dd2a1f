package train_test

import (
	"slices"
	"testing"

	"zeroshard/train"
)

func TestSampleSeesItsContext(t *testing.T) {
	var w world
	got, err := train.Sample(t.Context(), &w, []int32{7}, train.Sampling{Tokens: 4, Context: 3})
	if err != nil || !slices.Equal(got, []int32{1, 1, 1, 1}) {
		t.Fatal(got, err)
	}
	want := [][]int32{{7}, {7, 1}, {7, 1, 1}, {1, 1, 1}}
	if !slices.EqualFunc(w.seen, want, slices.Equal) {
		t.Errorf("the model saw %v, want %v", w.seen, want)
	}
}

func TestSampleStopsOnRequest(t *testing.T) {
	stop := make(chan struct{})
	close(stop)
	got, err := train.Sample(t.Context(), &world{}, []int32{7}, train.Sampling{Tokens: 4, Context: 3, Stop: stop})
	if err != nil || len(got) != 0 {
		t.Fatal(got, err)
	}
}

func TestSampleIsAFunctionOfTheSeed(t *testing.T) {
	draw := func(seed uint64) []int32 {
		s := train.Sampling{Tokens: 64, Context: 3, Temperature: 0.8, TopK: 3, Seed: seed}
		got, err := train.Sample(t.Context(), &world{}, []int32{7}, s)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	a, b, c := draw(1), draw(1), draw(2)
	if !slices.Equal(a, b) {
		t.Error("the same seed drew another text")
	}
	if slices.Equal(a, c) {
		t.Error("another seed drew the same text")
	}
	if slices.Contains(a, 0) {
		t.Error("token 0 is not among the best 3 and was drawn")
	}
	for _, id := range []int32{1, 2, 3} {
		if !slices.Contains(a, id) {
			t.Errorf("token %d was never drawn in 64", id)
		}
	}
}
