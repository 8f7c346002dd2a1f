package train_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"zeroshard/train"
)

// scorer is a model without weights: its scores follow from a text alone, and it keeps what it was shown.
type scorer struct{ seen [][][]int32 }

func (s *scorer) Scores(_ context.Context, texts [][]int32) ([][]float32, error) {
	var shown [][]int32
	rows := make([][]float32, len(texts))
	for i, t := range texts {
		shown = append(shown, slices.Clone(t))
		if len(t) == 0 {
			continue
		}
		h := uint32(2166136261)
		for _, id := range t {
			h = (h ^ uint32(id)) * 16777619
		}
		for id := range uint32(9) {
			rows[i] = append(rows[i], float32((h>>(3*id))%8))
		}
	}
	s.seen = append(s.seen, shown)
	return rows, nil
}

func generate(t *testing.T, w train.Scorer, prompts [][]int32, s train.Sampling) [][]int32 {
	t.Helper()
	out := make([][]int32, len(prompts))
	err := train.Generate(t.Context(), w, prompts, s, func(d train.Drawn) error {
		if !d.Ended {
			out[d.Prompt] = append(out[d.Prompt], d.Token)
		}
		if d.Last != (d.Ended || len(out[d.Prompt]) == s.Tokens) {
			t.Errorf("after %d tokens: %+v", len(out[d.Prompt]), d)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A text does not depend on the texts beside it, nor on when they end.
func TestGenerateDoesNotDependOnTheBatch(t *testing.T) {
	end := int32(3)
	s := train.Sampling{Tokens: 9, Context: 6, Temperature: 1, TopP: 0.9, Seed: 4, End: &end}
	prompts := [][]int32{{1}, {2, 5, 1, 1}, {8}, {1}}
	all := generate(t, &scorer{}, prompts, s)
	ended := 0
	for i := range prompts {
		s.Copies = []int{train.Copies(prompts)[i]}
		if got := generate(t, &scorer{}, prompts[i:i+1], s)[0]; !slices.Equal(got, all[i]) {
			t.Errorf("text %d: alone %v, beside others %v", i, got, all[i])
		}
		if len(all[i]) < s.Tokens {
			ended++
		}
		if slices.Contains(all[i], end) {
			t.Errorf("text %d goes on past its end: %v", i, all[i])
		}
	}
	if ended == 0 || ended == len(prompts) {
		t.Errorf("%d of %d texts ended early: the test shows nothing", ended, len(prompts))
	}
	if slices.Equal(all[0], all[3]) {
		t.Error("one prompt twice gave one text twice")
	}
}

// Alone or in any company, in any order, a prompt has one text; its copies have others, of which each again has one.
func TestGenerateIsAFunctionOfThePrompt(t *testing.T) {
	s := train.Sampling{Tokens: 9, Context: 6, Temperature: 1, Seed: 4}
	want := map[string]string{}
	for _, prompts := range [][][]int32{{{1}}, {{2}}, {{1, 1}}, {{2}, {1}}, {{1, 1}, {1}, {1}, {2}, {1}}, {{1}, {2}, {1}, {1, 1}}} {
		s.Copies = nil
		texts := generate(t, &scorer{}, prompts, s)
		copies := train.Copies(prompts)
		for i, text := range texts {
			is := fmt.Sprint(prompts[i], copies[i])
			if had, ok := want[is]; ok && had != fmt.Sprint(text) {
				t.Errorf("of %v, prompt %s: %v, elsewhere %s", prompts, is, text, had)
			}
			want[is] = fmt.Sprint(text)
		}
	}
	drawn := map[string]bool{}
	for _, text := range want {
		drawn[text] = true
	}
	if len(drawn) != 5 || len(want) != 5 {
		t.Errorf("%d texts of %d different prompts: %v", len(drawn), len(want), want)
	}
	s.Copies = []int{1, 2}
	if err := train.Generate(t.Context(), &scorer{}, [][]int32{{1}}, s, func(train.Drawn) error { return nil }); err == nil {
		t.Error("two counts for one prompt")
	}
}

// spoiled has logits of which one is no number from a length on.
type spoiled struct {
	scorer
	from int
	v    float32
}

func (s *spoiled) Scores(ctx context.Context, texts [][]int32) ([][]float32, error) {
	rows, err := s.scorer.Scores(ctx, texts)
	for i, t := range texts {
		if len(t) >= s.from {
			rows[i][5] = s.v
		}
	}
	return rows, err
}

// Of logits that are not finite nothing is drawn, at whatever temperature.
func TestGenerateRefusesLogits(t *testing.T) {
	for _, v := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		for _, s := range []train.Sampling{{Tokens: 9, Context: 9, Temperature: 1}, {Tokens: 9, Context: 9, Temperature: 1, TopK: 1, TopP: 0.5}, {Tokens: 9, Context: 9}} {
			n := 0
			err := train.Generate(t.Context(), &spoiled{from: 4, v: float32(v)}, [][]int32{{1, 2}}, s, func(train.Drawn) error { n++; return nil })
			var at *train.LogitsError
			var second *train.LogitsError
			if err := train.Generate(t.Context(), &spoiled{from: 4, v: float32(v)}, [][]int32{{1}, {1, 2, 3}}, s, func(train.Drawn) error { return nil }); !errors.As(err, &second) ||
				second.Prompt != 1 || second.Token != 4 {
				t.Errorf("the second of two: %v", err)
			}
			if !errors.Is(err, train.ErrLogits) || !errors.As(err, &at) || at.Token != 4 || n != 2 || !strings.Contains(err.Error(), "the logits of token 4 are not finite") {
				t.Errorf("%v, %+v: %v after %d tokens", v, s, err, n)
			}
		}
	}
}

// When the context is full the older half goes; a prompt that is longer is seen from its end.
func TestGenerateDropsTheOlderHalf(t *testing.T) {
	w := &scorer{}
	generate(t, w, [][]int32{{1, 2, 3, 4, 5, 6, 7}}, train.Sampling{Tokens: 6, Context: 4})
	var lens []int
	for _, s := range w.seen {
		lens = append(lens, len(s[0]))
	}
	if want := []int{4, 3, 4, 3, 4, 3}; !slices.Equal(lens, want) || !slices.Equal(w.seen[0][0], []int32{4, 5, 6, 7}) {
		t.Errorf("the model saw %v", w.seen)
	}
}

func TestGenerateEndsWithItsReader(t *testing.T) {
	full, n := errors.New("nobody reads"), 0
	err := train.Generate(t.Context(), &scorer{}, [][]int32{{1}}, train.Sampling{Tokens: 9, Context: 4}, func(train.Drawn) error {
		if n++; n == 3 {
			return full
		}
		return nil
	})
	if !errors.Is(err, full) || n != 3 {
		t.Errorf("after %d tokens: %v", n, err)
	}
}
