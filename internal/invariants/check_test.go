package invariants_test

import (
	"testing"

	"zeroshard/internal/invariants"
)

func TestCheck(t *testing.T) {
	caught := func(cond bool) (v any) {
		defer func() { v = recover() }()
		invariants.Check(cond, "rank %d of %d", 3, 2)
		return nil
	}
	if v := caught(true); v != nil {
		t.Errorf("a check that holds panicked: %v", v)
	}
	want := any(nil)
	if invariants.Enabled {
		want = "invariant broken: rank 3 of 2"
	}
	if v := caught(false); v != want {
		t.Errorf("a broken check gave %v, want %v", v, want)
	}
}

func TestBrokenPanicsInEveryBuild(t *testing.T) {
	defer func() {
		if v := recover(); v != "invariant broken: no task for gather" {
			t.Errorf("got %v", v)
		}
	}()
	invariants.Broken("no task for %s", "gather")
}
