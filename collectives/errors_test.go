package collectives_test

import (
	"errors"
	"fmt"
	"testing"

	"zeroshard/collectives"
	"zeroshard/device"
)

func TestMismatchError(t *testing.T) {
	gather := collectives.Call{Verb: collectives.AllGather, Len: 1024, DType: device.F32}
	shorter := collectives.Call{Verb: collectives.AllGather, Len: 896, DType: device.F32}
	reduce := collectives.Call{
		Verb: collectives.ReduceScatter, Len: 128, DType: device.F32,
		Fold: collectives.FoldID{Size: 2, Leaves: 8, Window: 4, Index: 0},
	}
	for _, c := range []struct {
		name  string
		calls []collectives.Call
		want  string
	}{
		{"two ranks", []collectives.Call{gather, reduce},
			"rank 0 all-gather of 1024 fp32, rank 1 reduce-scatter of 128 fp32 (window 0 of 2×4 leaves, 8 in all)"},
		{"one of many", []collectives.Call{gather, gather, shorter, gather, gather, gather},
			"ranks 0-1, 3-5 all-gather of 1024 fp32, rank 2 all-gather of 896 fp32"},
		{"the first one", []collectives.Call{shorter, gather, gather},
			"rank 0 all-gather of 896 fp32, ranks 1-2 all-gather of 1024 fp32"},
		{"three kinds", []collectives.Call{gather, shorter, reduce, shorter, gather},
			"ranks 0, 4 all-gather of 1024 fp32, ranks 1, 3 all-gather of 896 fp32, rank 2 reduce-scatter of 128 fp32 (window 0 of 2×4 leaves, 8 in all)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := &collectives.MismatchError{Seq: 12, Calls: c.calls}
			if want := "collectives: ranks disagree at call 12: " + c.want; err.Error() != want {
				t.Errorf("got  %s\nwant %s", err, want)
			}
			if !errors.Is(err, collectives.ErrMismatch) {
				t.Error("does not wrap ErrMismatch")
			}
		})
	}
}

func TestAbortError(t *testing.T) {
	cause := errors.New("device: out of memory")
	err := fmt.Errorf("test: step 3: %w", &collectives.AbortError{Rank: 5, Cause: cause})
	if !errors.Is(err, cause) {
		t.Error("does not wrap the cause")
	}
	if want := "test: step 3: collectives: aborted by rank 5: device: out of memory"; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
}

func f32(n int) device.Buffer { return device.Host(make([]float32, n)) }

func TestGatherCall(t *testing.T) {
	whole := f32(6)
	ints := whole
	ints.DType = device.I32
	for _, c := range []struct {
		name     string
		dst, src device.Buffer
		ok       bool
	}{
		{"apart", whole, f32(2), true},
		{"in its place", whole, whole.Slice(2, 4), true},
		{"empty", device.Buffer{}, device.Buffer{}, true},
		{"it only serves", device.Buffer{}, f32(2), true},
		{"in a peer's place", whole, whole.Slice(4, 6), false},
		{"between two places", whole, whole.Slice(1, 3), false},
		{"short", whole, f32(1), false},
		{"long", whole, f32(3), false},
		{"dtypes", ints, f32(2), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			call, err := collectives.GatherCall(1, 3, c.dst, c.src)
			if (err == nil) != c.ok || (err != nil && !errors.Is(err, collectives.ErrArgument)) {
				t.Fatalf("GatherCall: %v", err)
			}
			if want := (collectives.Call{Verb: collectives.AllGather, Len: c.src.Len, DType: c.src.DType}); c.ok && call != want {
				t.Errorf("call %v, want %v", call, want)
			}
		})
	}
}

// Rank 1 of 3 in the second window of 8 leaves: two carry slots in, two out.
func TestReduceCall(t *testing.T) {
	fold, err := collectives.NewFold(3, 8, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	last, err := collectives.NewFold(3, 8, 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	a, b, c, d, src := f32(2), f32(2), f32(2), f32(2), f32(6)
	list := func(b ...device.Buffer) []device.Buffer { return b }
	for _, c := range []struct {
		name string
		red  collectives.Reduction
		ok   bool
	}{
		{"apart", collectives.Reduction{In: list(a, b), Out: list(c, d), Src: src, Fold: fold}, true},
		{"carry in place", collectives.Reduction{In: list(a, b), Out: list(a, b), Src: src, Fold: fold}, true},
		{"the only result in the own slice", collectives.Reduction{In: list(a, b), Out: list(src.Slice(2, 4)), Src: src, Fold: last}, true},
		{"carry exchanged", collectives.Reduction{In: list(a, b), Out: list(b, a), Src: src, Fold: fold}, false},
		{"results in one place", collectives.Reduction{In: list(a, b), Out: list(c, c), Src: src, Fold: fold}, false},
		{"one of two results in the own slice", collectives.Reduction{In: list(a, b), Out: list(c, src.Slice(2, 4)), Src: src, Fold: fold}, false},
		{"the only result in a peer's slice", collectives.Reduction{In: list(a, b), Out: list(src.Slice(0, 2)), Src: src, Fold: last}, false},
		{"carry in the source", collectives.Reduction{In: list(a, src.Slice(2, 4)), Out: list(c, d), Src: src, Fold: fold}, false},
		{"slots of unequal length", collectives.Reduction{In: list(a, b), Out: list(c, f32(3)), Src: src, Fold: fold}, false},
		{"carry of unequal length", collectives.Reduction{In: list(a, f32(1)), Out: list(c, d), Src: src, Fold: fold}, false},
		{"a carry too few", collectives.Reduction{In: list(a), Out: list(c, d), Src: src, Fold: fold}, false},
		{"no source", collectives.Reduction{In: list(a, b), Out: list(c, d), Fold: fold}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			call, err := collectives.ReduceCall(1, 3, c.red)
			if (err == nil) != c.ok || (err != nil && !errors.Is(err, collectives.ErrArgument)) {
				t.Fatalf("ReduceCall: %v", err)
			}
			want := collectives.Call{Verb: collectives.ReduceScatter, Len: 2, DType: device.F32, Fold: c.red.Fold.FoldID}
			if c.ok && call != want {
				t.Errorf("call %v, want %v", call, want)
			}
		})
	}
	// Rank 2 has no part in the last window.
	if _, err := collectives.ReduceCall(2, 3, collectives.Reduction{In: list(a, b), Out: list(c), Fold: last}); err != nil {
		t.Errorf("a rank without a part: %v", err)
	}
	if _, err := collectives.ReduceCall(2, 3, collectives.Reduction{In: list(a, b), Out: list(c), Src: src, Fold: last}); !errors.Is(err, collectives.ErrArgument) {
		t.Errorf("a rank with a part too many: %v", err)
	}
}
