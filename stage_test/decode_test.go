package stagetest

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"zeroshard/zero"
)

// decode runs Decode on all ranks and returns what rank 0 got.
func (w *crew) decode(t *testing.T, texts ...zero.Text) ([]float32, error) {
	t.Helper()
	got := make([][]float32, len(w.engines))
	errs := each(len(w.engines), func(r int) (err error) {
		got[r], err = w.engines[r].Decode(t.Context(), texts)
		return err
	})
	for r, err := range errs {
		if (err == nil) != (errs[0] == nil) {
			t.Fatalf("rank 0 says %v, rank %d %v", errs[0], r, err)
		}
		if r > 0 && got[r] != nil {
			t.Errorf("rank %d got %d logits", r, len(got[r]))
		}
	}
	return got[0], errs[0]
}

// all runs f on all ranks, where no error is expected.
func all(t *testing.T, w *crew, f func(r int) error) {
	t.Helper()
	if err := errors.Join(each(len(w.engines), f)...); err != nil {
		t.Fatal(err)
	}
}

// An engine goes on from its caches only while they hold what they held: a step, an evaluation, a read and a write of state each end that, on all
// ranks alike, and what is refused ends nothing.
func TestDecodeGoesOnOnlyFromWhatIsThere(t *testing.T) {
	j := cell{Stage: 3, Ranks: 3, Prefetch: 1}.config(job(t, "micro", 6, 1, 8, 0))
	j.Texts = 2
	w := mustCrew(t, j, seams{})
	defer w.close(t)
	w.mustStep(t, 1)
	first, next := zero.Text{Tokens: []int32{3, 1, 4}}, zero.Text{At: 3, Tokens: []int32{1, 5}}
	must := func(texts ...zero.Text) []float32 {
		t.Helper()
		got, err := w.decode(t, texts...)
		if err != nil {
			t.Fatal(err)
		}
		return slices.Clone(got)
	}
	for name, between := range map[string]func(){
		"a step": func() { w.mustStep(t, 2) },
		"an evaluation": func() {
			all(t, w, func(r int) error { return passes[1].run(w, r) })
		},
		"a read": func() { w.hash(t) },
		"a write": func() {
			all(t, w, func(r int) error {
				return w.engines[r].Write("h.0.ln_1.weight", zero.Master, func(_ int, dst []float32) error { clear(dst); return nil })
			})
		},
	} {
		must(first, first)
		must(next, zero.Text{}) // the second waits
		between()
		if _, err := w.decode(t, zero.Text{At: 5, Tokens: []int32{9}}, next); !errors.Is(err, zero.ErrBatch) || !strings.Contains(err.Error(), "text 0 goes on at 5, its cache holds 0 tokens") {
			t.Errorf("after %s: %v", name, err)
		}
	}
	for want, texts := range map[string][]zero.Text{
		"1 texts, the program continues 2": {first},
		"there is room for 8":              {{Tokens: make([]int32, 9)}, {}},
		"text 1 goes on at 4":              {{}, {At: 4, Tokens: []int32{1}}},
		"text 0: 1 tokens after -1":        {{At: -1, Tokens: []int32{1}}, {}},
	} {
		must(first, first)
		if _, err := w.decode(t, texts...); !errors.Is(err, zero.ErrBatch) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", texts, err)
		}
	}
	whole := zero.Text{Tokens: append(slices.Clone(first.Tokens), next.Tokens...)}
	want := must(whole, whole)
	must(first, first)
	if got := must(next, next); !slices.Equal(got, want) {
		t.Errorf("in two calls %v, in one %v", got, want)
	}
	if got, err := w.engines[0].Logits(t.Context(), whole.Tokens); got != nil || !errors.Is(err, zero.ErrOptions) || !strings.Contains(err.Error(), "use Decode") {
		t.Errorf("Logits of a model that goes on: %v, %v", got, err)
	}
}
